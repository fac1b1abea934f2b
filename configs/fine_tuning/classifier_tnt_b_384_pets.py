# Fine-tunes TNT-B on Oxford-IIIT Pets at 384 pixels (arXiv 2103.00112). 8 GPUs x 96 images.
_base_ = ['../_base_/datasets/pets_384.py', '../_base_/fine_tuning_384.py']

model = dict(
    data_preprocessor=dict(num_classes=37),
    backbone=dict(arch='base', init_cfg=dict(checkpoint='tnt_b')),
    head=dict(num_classes=37, in_channels=640),
)
