# CIFAR-100 enlarged to 384 pixels; downloaded to data/cifar100 if it is missing.
_base_ = './imagenet_384.py'

# The data set contains pixels: there are no files to load.
cifar100 = dict(type='CIFAR100', data_root='data/cifar100/')
train_dataloader = dict(
    dataset=dict(_delete_=True, **cifar100, split='train', pipeline=_base_.train_pipeline[1:])
)
val_dataloader = dict(
    dataset=dict(_delete_=True, **cifar100, split='test', pipeline=_base_.test_pipeline[1:])
)
test_dataloader = val_dataloader
