# ADE20K for 40,000 iterations, 8 GPUs x 4 images.
_base_ = [
    'mmseg::_base_/datasets/ade20k.py',
    './schedules/adamw_40k.py',
    './default_runtime_mmseg.py',
]
