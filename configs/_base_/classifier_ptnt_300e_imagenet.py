# PyramidTNT on ImageNet-1k at 256 pixels, as its authors train. A leaf sets the arch and the
# channels, both from archs/.
_base_ = [
    './models/classifier_ptnt.py',
    './datasets/imagenet_224.py',
    './schedules/imagenet_300e.py',
    './default_runtime_mmpretrain_ema.py',
]

_base_.train_dataloader.dataset.pipeline[1].scale = 256
_base_.val_dataloader.dataset.pipeline[1].scale = 284
_base_.val_dataloader.dataset.pipeline[2].crop_size = 256
_base_.test_dataloader = _base_.val_dataloader
