# ImageNet-1k at 192 pixels.
_base_ = './imagenet_224.py'

_base_.train_dataloader.dataset.pipeline[1].scale = 192
_base_.val_dataloader.dataset.pipeline[1].scale = 213
_base_.val_dataloader.dataset.pipeline[2].crop_size = 192
_base_.test_dataloader = _base_.val_dataloader
