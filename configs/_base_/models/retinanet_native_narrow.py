# As retinanet_native.py with a pyramid and a head of 64 channels, for a few thousand images. From
# random initialisation, a pyramid and a head with normalisation learn much sooner.
_base_ = './retinanet_native.py'

width = 64
norm_cfg = dict(type='GN', num_groups=16)
model = dict(
    neck=dict(out_channels=width, norm_cfg=norm_cfg),
    bbox_head=dict(in_channels=width, feat_channels=width, norm_cfg=norm_cfg),
)
