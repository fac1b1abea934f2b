# ImageNet-1k at 384 pixels, 8 GPUs x 96 images.
_base_ = './imagenet_224.py'

_base_.train_dataloader.batch_size = 96
_base_.train_dataloader.dataset.pipeline[1].scale = 384
# Without erasing, as DeiT fine-tunes.
_base_.train_dataloader.dataset.pipeline.pop(4)
_base_.val_dataloader.dataset.pipeline[1].scale = 426
_base_.val_dataloader.dataset.pipeline[2].crop_size = 384
_base_.test_dataloader = _base_.val_dataloader
