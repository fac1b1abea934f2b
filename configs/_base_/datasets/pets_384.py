# Oxford-IIIT Pets at 384 pixels, 8 GPUs x 96 images. data/pets holds images/ and annotations/.
_base_ = './imagenet_384.py'

pets = dict(type='OxfordIIITPet', data_root='data/pets/')
train_dataloader = dict(
    dataset=dict(_delete_=True, **pets, split='trainval', pipeline=_base_.train_pipeline)
)
val_dataloader = dict(
    dataset=dict(_delete_=True, **pets, split='test', pipeline=_base_.test_pipeline)
)
test_dataloader = val_dataloader
