# Mask2Former with PyramidTNT-S, ADE20K, 8 GPUs x 2 images: mmseg's recipe for Swin-T.
_base_ = [
    'mmseg::mask2former/mask2former_r50_8xb2-160k_ade20k-512x512.py',
    '../_base_/models/mask2former_ptnt.py',
    '../_base_/custom_hooks.py',
]

custom_imports = dict(imports=['ptnt_mm', 'ptnt_mm.weights.safe_loading'])
model = dict(
    _base_.model_parts,
    # Test images are padded to multiples of the backbone's last stride.
    data_preprocessor=dict(_base_.model_parts.data_preprocessor, test_cfg=dict(size_divisor=64)),
    decode_head=dict(in_channels=[256] * 4),
    # For sliding windows: --cfg-options model.test_cfg.mode=slide
    test_cfg=dict(crop_size=(512, 512), stride=(341, 341)),
)
optim_wrapper = _base_.optimizer_parts
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
