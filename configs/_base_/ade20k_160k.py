# ADE20K for 160,000 iterations, 8 GPUs x 2 images.
_base_ = [
    'mmseg::_base_/datasets/ade20k.py',
    './schedules/adamw_160k.py',
    './default_runtime_mmseg.py',
]

train_dataloader = dict(batch_size=2)
