# Cascade Mask R-CNN with PyramidTNT-S, COCO 3x.
_base_ = [
    '_base_/models/cascade_mask_rcnn_ptnt_s.py',
    'mmdet::_base_/datasets/coco_instance.py',
    '_base_/schedules/adamw_3x.py',
    '_base_/tta/instance.py',
    '_base_/default_runtime.py',
]

model = dict(backbone=dict(drop_path_rate=0.2))
