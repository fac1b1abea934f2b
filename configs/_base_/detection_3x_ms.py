# Boxes of COCO for 36 epochs, with multi-scale training.
_base_ = [
    './datasets/coco_detection_ms.py',
    './schedules/adamw_3x.py',
    './tta/detection.py',
    './default_runtime.py',
]
