# Mask R-CNN with PyramidTNT-M, COCO 1x.
_base_ = [
    '_base_/models/mask_rcnn_ptnt_m.py',
    'mmdet::_base_/datasets/coco_instance.py',
    '_base_/schedules/adamw_1x.py',
    '_base_/tta/instance.py',
    '_base_/default_runtime.py',
]
