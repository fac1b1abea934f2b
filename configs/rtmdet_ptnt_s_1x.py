# RTMDet with PyramidTNT-S and our 1x recipe instead of RTMDet's 300 epochs. Not in the paper.
_base_ = [
    '_base_/models/rtmdet_ptnt_s.py',
    'mmdet::_base_/datasets/coco_detection.py',
    '_base_/schedules/adamw_1x.py',
    '_base_/tta/detection.py',
    '_base_/default_runtime.py',
]
