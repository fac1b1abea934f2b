# RTMDet with PyramidTNT-S and the 1x recipe of the other detectors, not RTMDet's 300 epochs.
_base_ = [
    '_base_/models/rtmdet_ptnt_s.py',
    'mmdet::_base_/datasets/coco_detection.py',
    '_base_/schedules/adamw_1x.py',
    '_base_/tta/detection.py',
    '_base_/default_runtime.py',
]
