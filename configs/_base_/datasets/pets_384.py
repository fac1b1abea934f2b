# Oxford-IIIT Pets at 384 pixels, 8 GPUs x 96 images. data/pets holds images/ and annotations/.
_base_ = './imagenet_224.py'

_base_.train_dataloader.batch_size = 96
_base_.train_dataloader.dataset = dict(
    type='OxfordIIITPet',
    data_root='data/pets/',
    split='trainval',
    # Without erasing, as DeiT fine-tunes.
    pipeline=[
        step for step in _base_.train_dataloader.dataset.pipeline if step.type != 'RandomErasing'
    ],
)
_base_.train_dataloader.dataset.pipeline[1].scale = 384
_base_.val_dataloader.dataset = dict(
    type='OxfordIIITPet',
    data_root='data/pets/',
    split='test',
    pipeline=_base_.val_dataloader.dataset.pipeline,
)
_base_.val_dataloader.dataset.pipeline[1].scale = 426
_base_.val_dataloader.dataset.pipeline[2].crop_size = 384
_base_.test_dataloader = _base_.val_dataloader
