# Rotated RetinaNet with PyramidTNT-S, DOTA 1.0 1x, angles of le90; one GPU with 2 images.
_base_ = [
    'mmrotate::rotated_retinanet/rotated-retinanet-rbox-le90_r50_fpn_1x_dota.py',
    '../_base_/rotated_1x.py',
    '../_base_/custom_hooks.py',
]

custom_imports = dict(imports=['ptnt_mm', 'ptnt_mm.weights.safe_loading'])
model = dict(
    data_preprocessor=dict(
        _base_.preprocessor_parts,
        pad_size_divisor=64,  # the last stride that the pyramid enlarges
    ),
    backbone=dict(_delete_=True, type='PyramidTNT', arch='small', drop_path_rate=0.1),
    # Strides 8, 16, 32, 64, and 128 from one more convolution: those of the anchors.
    neck=dict(in_channels=[128, 256, 512, 512], start_level=0),
)
optim_wrapper = _base_.optimizer_parts
default_hooks = dict(checkpoint=_base_.checkpoint_parts)
