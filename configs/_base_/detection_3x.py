# Boxes of COCO for 36 epochs.
_base_ = [
    'mmdet::_base_/datasets/coco_detection.py',
    './schedules/adamw_3x.py',
    './tta/detection.py',
    './default_runtime.py',
]
