# Mask R-CNN with PyramidTNT-M, COCO 3x with multi-scale training.
_base_ = [
    '_base_/models/mask_rcnn_ptnt_m.py',
    '_base_/datasets/coco_instance_ms.py',
    '_base_/schedules/adamw_3x.py',
    '_base_/tta/instance.py',
    '_base_/default_runtime.py',
]

model = dict(backbone=dict(drop_path_rate=0.2))
