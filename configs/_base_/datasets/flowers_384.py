# Oxford Flowers at 384 pixels. data/flowers holds jpg/, imagelabels.mat and setid.mat.
_base_ = './pets_384.py'

flowers = dict(type='Flowers102', data_root='data/flowers/')
_base_.train_dataloader.dataset.update(flowers)
_base_.val_dataloader.dataset.update(flowers)
_base_.test_dataloader = _base_.val_dataloader
