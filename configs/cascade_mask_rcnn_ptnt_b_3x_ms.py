# Cascade Mask R-CNN with PyramidTNT-B, COCO 3x with multi-scale training.
_base_ = [
    '_base_/models/cascade_mask_rcnn_ptnt_b.py',
    '_base_/datasets/coco_instance_ms.py',
    '_base_/schedules/adamw_3x.py',
    '_base_/tta/instance.py',
    '_base_/default_runtime.py',
]

model = dict(backbone=dict(drop_path_rate=0.2))
