# Boxes and masks of COCO for 36 epochs.
_base_ = [
    'mmdet::_base_/datasets/coco_instance.py',
    './schedules/adamw_3x.py',
    './tta/instance.py',
    './default_runtime.py',
]
