# DINO with PyramidTNT-S and mmdet's 12-epoch recipe, but no decay on one-dimensional weights.
# The backbone's strides 8, 16, 32, 64 are those that DINO expects, so it needs no upsampling neck
# and no extra level. Our recipe, not the paper's.
_base_ = [
    'mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py',
    '_base_/tta/detection.py',
    '_base_/hooks.py',
]

model = dict(
    # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
    data_preprocessor=dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]),
    backbone=dict(_delete_=True, type='PyramidTNT', arch='small', drop_path_rate=0.1),
    neck=dict(in_channels=[128, 256, 512, 512]),
)

optim_wrapper = dict(
    constructor='CheckedOptimWrapperConstructor',
    paramwise_cfg=dict(flat_decay_mult=0.0),
)
default_hooks = dict(checkpoint=dict(type='WholeCheckpointHook', max_keep_ckpts=3))
