# RetinaNet with TNT-S and its ImageNet weights, COCO 1x. Our recipe, not the paper's.
_base_ = [
    '_base_/models/retinanet_tnt_s.py',
    'mmdet::_base_/datasets/coco_detection.py',
    '_base_/schedules/adamw_1x.py',
    '_base_/tta/detection.py',
    '_base_/default_runtime.py',
]

optim_wrapper = dict(paramwise_cfg=dict(custom_keys=dict(cls_token=dict(decay_mult=0.0))))
