# iNaturalist 2019 at 384 pixels: data/inat19 holds train/ and val/ with a folder for each class.
_base_ = './imagenet_384.py'

inat19 = dict(type='CustomDataset', data_root='data/inat19/')
train_dataloader = dict(
    dataset=dict(_delete_=True, **inat19, data_prefix='train', pipeline=_base_.train_pipeline)
)
val_dataloader = dict(
    dataset=dict(_delete_=True, **inat19, data_prefix='val', pipeline=_base_.test_pipeline)
)
test_dataloader = val_dataloader
