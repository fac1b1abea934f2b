# RTMDet with PyramidTNT-S under the 1x recipe of the others, not RTMDet's own 300 epochs. Ours.
_base_ = [
    '_base_/models/rtmdet_ptnt_s.py',
    'mmdet::_base_/datasets/coco_detection.py',
    '_base_/schedules/adamw_1x.py',
    '_base_/tta/detection.py',
    '_base_/default_runtime.py',
]
