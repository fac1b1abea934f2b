# iNaturalist 2019 at 384 pixels: data/inat19 holds train/ and val/ with a folder for each class.
_base_ = './imagenet_384.py'

for loader in (_base_.train_dataloader, _base_.val_dataloader):
    loader.dataset.update(type='CustomDataset', data_root='data/inat19/')
    loader.dataset.pop('split')
_base_.val_dataloader.dataset.data_prefix = 'val'
_base_.test_dataloader = _base_.val_dataloader
