# Settings that all runs share. 240 images in batches of 4 give 60 iterations per epoch.
batch_size = 4
# Half the demo's size; anchors and scales are halved, too.
image_scale = (128, 96)
