# Boxes and masks of COCO for 12 epochs.
_base_ = [
    'mmdet::_base_/datasets/coco_instance.py',
    './schedules/adamw_1x.py',
    './tta/instance.py',
    './default_runtime.py',
]
