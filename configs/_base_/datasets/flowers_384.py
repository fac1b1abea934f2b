# Oxford Flowers at 384 pixels. data/flowers holds jpg/, imagelabels.mat and setid.mat.
_base_ = './imagenet_384.py'

flowers = dict(type='Flowers102', data_root='data/flowers/')
train_dataloader = dict(
    dataset=dict(_delete_=True, **flowers, split='trainval', pipeline=_base_.train_pipeline)
)
val_dataloader = dict(
    dataset=dict(_delete_=True, **flowers, split='test', pipeline=_base_.test_pipeline)
)
test_dataloader = val_dataloader
