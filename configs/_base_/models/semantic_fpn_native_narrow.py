# As semantic_fpn_native.py with a pyramid and a head of 64 channels, for a few thousand images.
_base_ = './semantic_fpn_native.py'

width = 64
_base_.model.neck[1].out_channels = width
model = dict(decode_head=dict(in_channels=[width] * 5, channels=width))
