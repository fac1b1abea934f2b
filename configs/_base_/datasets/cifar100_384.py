# As cifar10_384.py, with 100 classes; downloaded to data/cifar100 if it is missing.
_base_ = './cifar10_384.py'

cifar100 = dict(type='CIFAR100', data_root='data/cifar100/')
train_dataloader = dict(dataset=cifar100)
val_dataloader = dict(dataset=cifar100)
test_dataloader = dict(dataset=cifar100)
