# CPVT-S on ImageNet-1k (arXiv 2102.10882). 8 GPUs x 256 images.
_base_ = [
    '_base_/models/classifier_cpvt_s.py',
    '_base_/datasets/imagenet_224.py',
    '_base_/schedules/imagenet_300e_cpvt.py',
    '_base_/default_runtime_mmpretrain_ema.py',
]

train_dataloader = dict(batch_size=256)
