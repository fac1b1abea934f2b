# What all runs share. 240 images in batches of 4 are 60 iterations an epoch.
batch_size = 4
# Half the demo's: half of its anchors and scales go with it.
image_scale = (128, 96)
