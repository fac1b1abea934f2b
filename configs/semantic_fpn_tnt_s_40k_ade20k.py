# Semantic FPN with TNT-S, ADE20K, 8 GPUs x 4 images. Our recipe, not the paper's.
_base_ = [
    '_base_/models/semantic_fpn_tnt_s.py',
    'mmseg::_base_/datasets/ade20k.py',
    '_base_/schedules/adamw_40k.py',
    '_base_/default_runtime_mmseg.py',
]

optim_wrapper = dict(paramwise_cfg=dict(custom_keys=dict(cls_token=dict(decay_mult=0.0))))
