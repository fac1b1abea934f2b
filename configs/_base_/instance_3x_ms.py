# Boxes and masks of COCO for 36 epochs, with multi-scale training.
_base_ = [
    './datasets/coco_instance_ms.py',
    './schedules/adamw_3x.py',
    './tta/instance.py',
    './default_runtime.py',
]
