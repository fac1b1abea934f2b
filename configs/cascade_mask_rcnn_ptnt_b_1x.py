# Cascade Mask R-CNN with PyramidTNT-B, COCO 1x.
_base_ = [
    '_base_/models/cascade_mask_rcnn_ptnt_b.py',
    'mmdet::_base_/datasets/coco_instance.py',
    '_base_/schedules/adamw_1x.py',
    '_base_/tta/instance.py',
    '_base_/default_runtime.py',
]
