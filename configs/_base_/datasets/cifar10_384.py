# CIFAR-10 enlarged to 384 pixels; downloaded to data/cifar10 if it is missing.
_base_ = './pets_384.py'

# The data set contains pixels: there are no files to load.
_base_.train_dataloader.dataset = dict(
    type='CIFAR10',
    data_root='data/cifar10/',
    split='train',
    pipeline=_base_.train_dataloader.dataset.pipeline[1:],
)
_base_.val_dataloader.dataset = dict(
    type='CIFAR10',
    data_root='data/cifar10/',
    split='test',
    pipeline=_base_.val_dataloader.dataset.pipeline[1:],
)
_base_.test_dataloader = _base_.val_dataloader
