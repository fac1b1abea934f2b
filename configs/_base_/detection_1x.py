# Boxes of COCO for 12 epochs.
_base_ = [
    'mmdet::_base_/datasets/coco_detection.py',
    './schedules/adamw_1x.py',
    './tta/detection.py',
    './default_runtime.py',
]
