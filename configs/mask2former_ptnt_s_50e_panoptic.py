# Mask2Former with PyramidTNT-S, things and stuff of COCO: the recipe of mask2former_ptnt_s_50e.
_base_ = [
    'mmdet::mask2former/mask2former_r50_8xb2-lsj-50e_coco-panoptic.py',
    '_base_/models/mask2former_ptnt.py',
    '_base_/hooks.py',
]

model = dict(_base_.model_parts, panoptic_head=dict(in_channels=[256] * 4))
optim_wrapper = _base_.optimizer_parts
train_cfg = dict(_delete_=True, type='EpochBasedTrainLoop', max_epochs=50)
param_scheduler = dict(end=50, by_epoch=True, milestones=[44, 48])
default_hooks = dict(checkpoint=dict(_delete_=True, type='WholeCheckpointHook', max_keep_ckpts=3))
log_processor = dict(by_epoch=True)
