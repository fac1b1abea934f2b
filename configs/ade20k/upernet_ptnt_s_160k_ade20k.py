# UPerNet with PyramidTNT-S, ADE20K, 8 GPUs x 2 images. Our recipe, not the paper's.
_base_ = [
    '../_base_/archs/ptnt_s.py',
    '../_base_/models/upernet_ptnt.py',
    '../_base_/ade20k_160k.py',
]

_base_.model.backbone.arch = _base_.pop('arch')
_base_.model.neck.in_channels = _base_.model.decode_head.in_channels = _base_.channels
_base_.model.auxiliary_head.in_channels = _base_.pop('channels')[2]
