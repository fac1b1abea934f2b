# UPerNet with PyramidTNT-Ti, ADE20K, 8 GPUs x 2 images. Our recipe, not the paper's.
_base_ = [
    '_base_/models/upernet_ptnt_ti.py',
    'mmseg::_base_/datasets/ade20k.py',
    '_base_/schedules/adamw_160k.py',
    '_base_/default_runtime_mmseg.py',
]

train_dataloader = dict(batch_size=2)
