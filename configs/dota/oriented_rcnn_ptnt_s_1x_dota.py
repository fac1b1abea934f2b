# Oriented R-CNN with PyramidTNT-S, DOTA 1.0 1x, angles of le90; one GPU with 2 images.
_base_ = [
    'mmrotate::oriented_rcnn/oriented-rcnn-le90_r50_fpn_1x_dota.py',
    '../_base_/rotated_1x.py',
    '../_base_/custom_hooks.py',
]

custom_imports = dict(imports=['ptnt_mm', 'ptnt_mm.weights.safe_loading'])
channels = [128, 256, 512, 512]
model = dict(
    data_preprocessor=_base_.preprocessor_parts,
    backbone=dict(_delete_=True, type='PyramidTNT', arch='small', drop_path_rate=0.1),
    # Strides 8, 16, 32, 64 become 4, 8, 16, 32.
    neck=[
        dict(type='TransposedConvNeck', in_channels=channels),
        dict(type='mmdet.FPN', in_channels=channels, out_channels=256, num_outs=5),
    ],
)
optim_wrapper = _base_.optimizer_parts
default_hooks = dict(checkpoint=_base_.checkpoint_parts)
