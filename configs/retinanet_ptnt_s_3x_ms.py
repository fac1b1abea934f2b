# RetinaNet with PyramidTNT-S, COCO 3x with multi-scale training.
_base_ = [
    '_base_/models/retinanet_ptnt_s.py',
    '_base_/datasets/coco_detection_ms.py',
    '_base_/schedules/adamw_3x.py',
    '_base_/tta/detection.py',
    '_base_/default_runtime.py',
]

model = dict(backbone=dict(drop_path_rate=0.2))
