# RetinaNet with PyramidTNT-S, COCO 1x; the paper reports 42.0 AP (arXiv 2201.00978).
# 8 GPUs x 2 images. Load the ImageNet weights with `ptnt train --pretrained FILE`.
_base_ = [
    '_base_/models/retinanet_ptnt_s.py',
    'mmdet::_base_/datasets/coco_detection.py',
    '_base_/schedules/adamw_1x.py',
    '_base_/tta/detection.py',
    '_base_/default_runtime.py',
]
