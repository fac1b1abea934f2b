# RetinaNet with PyramidTNT-Ti, COCO 1x.
_base_ = [
    '_base_/models/retinanet_ptnt_ti.py',
    'mmdet::_base_/datasets/coco_detection.py',
    '_base_/schedules/adamw_1x.py',
    '_base_/tta/detection.py',
    '_base_/default_runtime.py',
]
