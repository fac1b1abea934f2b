# Semantic FPN with PyramidTNT-B, ADE20K, 8 GPUs x 4 images. Our recipe, not the paper's.
_base_ = [
    '_base_/models/semantic_fpn_ptnt_b.py',
    'mmseg::_base_/datasets/ade20k.py',
    '_base_/schedules/adamw_40k.py',
    '_base_/default_runtime_mmseg.py',
]
