# As semantic_fpn_native.py with a pyramid and a head of 64 channels, for a few thousand images. The
# normalisation is GroupNorm, which needs no large batches.
_base_ = '../models/semantic_fpn_native.py'

width = 64
norm_cfg = dict(type='GN', num_groups=16)
_base_.model.neck[0].update(norm_cfg=norm_cfg)
_base_.model.neck[1].update(out_channels=width, norm_cfg=norm_cfg)
model = dict(decode_head=dict(in_channels=[width] * 5, channels=width, norm_cfg=norm_cfg))
