# CIFAR-10 enlarged to 384 pixels; downloaded to data/cifar10 if it is missing.
_base_ = './imagenet_384.py'

# The data set contains pixels: there are no files to load.
cifar10 = dict(type='CIFAR10', data_root='data/cifar10/')
train_dataloader = dict(
    dataset=dict(_delete_=True, **cifar10, split='train', pipeline=_base_.train_pipeline[1:])
)
val_dataloader = dict(
    dataset=dict(_delete_=True, **cifar10, split='test', pipeline=_base_.test_pipeline[1:])
)
test_dataloader = val_dataloader
