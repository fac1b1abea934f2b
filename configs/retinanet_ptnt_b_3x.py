# RetinaNet with PyramidTNT-B, COCO 3x.
_base_ = ['_base_/models/retinanet_ptnt.py', '_base_/detection_3x.py']

model = dict(
    backbone=dict(arch='base', drop_path_rate=0.2),
    neck=[dict(part, in_channels=[512, 1024, 1024]) for part in _base_.model.neck],
)
