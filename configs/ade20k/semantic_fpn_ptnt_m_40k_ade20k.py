# Semantic FPN with PyramidTNT-M, ADE20K, 8 GPUs x 4 images. Our recipe, not the paper's.
_base_ = [
    '../_base_/archs/ptnt_m.py',
    '../_base_/models/semantic_fpn_ptnt.py',
    '../_base_/ade20k_40k.py',
]

_base_.model.backbone.arch = _base_.pop('arch')
_base_.model.neck[0].in_channels = _base_.model.neck[1].in_channels = _base_.pop('channels')
