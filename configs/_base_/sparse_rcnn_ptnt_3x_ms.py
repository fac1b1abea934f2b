# Sparse R-CNN (arXiv 2011.12450) with PyramidTNT-S and mmdet's recipe: 300 proposals, 36 epochs of
# images of 480 to 800 pixels, half of them cropped first, AdamW with 2.5e-5 and weight decay 1e-4
# for 16 images, clipped gradients. As for our other detectors, one-dimensional weights are not
# decayed. A leaf of another size sets the arch and the channels.
_base_ = [
    'mmdet::sparse_rcnn/sparse-rcnn_r50_fpn_300-proposals_crop-ms-480-800-3x_coco.py',
    './tta/detection.py',
    './hooks.py',
]

model = dict(
    # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
    data_preprocessor=dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]),
    # Drop path for 36 epochs, as in the other 3x configs.
    backbone=dict(_delete_=True, type='PyramidTNT', arch='small', drop_path_rate=0.2),
    # Strides 8, 16, 32, 64 become 4, 8, 16, 32, from which the proposals take their features.
    neck=[
        dict(type='TransposedConvNeck', in_channels=[128, 256, 512, 512]),
        dict(type='FPN', in_channels=[128, 256, 512, 512], out_channels=256, num_outs=4),
    ],
)

optim_wrapper = dict(
    constructor='CheckedOptimWrapperConstructor',
    paramwise_cfg=dict(flat_decay_mult=0.0),
)
default_hooks = dict(checkpoint=dict(type='WholeCheckpointHook', max_keep_ckpts=3))
