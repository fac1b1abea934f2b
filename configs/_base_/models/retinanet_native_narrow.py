# As retinanet_native.py with a pyramid and a head of 64 channels, for a few thousand images.
_base_ = './retinanet_native.py'

width = 64
model = dict(neck=dict(out_channels=width), bbox_head=dict(in_channels=width, feat_channels=width))
