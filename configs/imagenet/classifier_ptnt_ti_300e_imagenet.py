# PyramidTNT-Ti on ImageNet-1k, 75.2 % top-1 in the paper (arXiv 2201.00978). 8 GPUs x 128 images.
_base_ = ['../_base_/archs/ptnt_ti.py', '../_base_/classifier_ptnt_300e_imagenet.py']

_base_.model.backbone.arch = _base_.pop('arch')
_base_.model.head.in_channels = _base_.pop('channels')[-1]

# At 192 pixels.
_base_.train_dataloader.dataset.pipeline[1].scale = 192
_base_.val_dataloader.dataset.pipeline[1].scale = 213
_base_.val_dataloader.dataset.pipeline[2].crop_size = 192
_base_.test_dataloader = _base_.val_dataloader
