# Mask2Former with PyramidTNT-S, ADE20K, 8 GPUs x 2 images: mmseg's recipe for Swin-T.
_base_ = [
    'mmseg::mask2former/mask2former_r50_8xb2-160k_ade20k-512x512.py',
    '../_base_/models/mask2former_ptnt.py',
    '../_base_/custom_hooks.py',
]

custom_imports = dict(imports=['ptnt_mm', 'ptnt_mm.weights.safe_loading'])
model = dict(
    # Test images are padded to multiples of the backbone's last stride.
    data_preprocessor=dict(_base_.scale, test_cfg=dict(size_divisor=64)),
    backbone=dict(_base_.backbone, _delete_=True),
    neck=_base_.neck,
    decode_head=dict(in_channels=[256] * 4),
    # For sliding windows: --cfg-options model.test_cfg.mode=slide
    test_cfg=dict(crop_size=(512, 512), stride=(341, 341)),
)
optim_wrapper = dict(
    constructor='CheckedOptimWrapperConstructor', paramwise_cfg=_base_.paramwise_cfg
)
train_cfg = dict(type='RepeatableIterBasedTrainLoop')
default_hooks = dict(
    checkpoint=dict(
        _delete_=True,
        type='WholeCheckpointHook',
        by_epoch=False,
        interval=5_000,
        max_keep_ckpts=3,
    )
)
