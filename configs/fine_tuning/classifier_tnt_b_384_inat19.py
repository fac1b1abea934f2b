# Fine-tunes TNT-B on iNaturalist 2019 at 384 pixels (arXiv 2103.00112). 8 GPUs x 96 images.
_base_ = [
    '../_base_/archs/tnt_b.py',
    '../_base_/datasets/inat19_384.py',
    '../_base_/fine_tuning_384.py',
]

_base_.model.backbone.arch = _base_.pop('arch')
_base_.model.backbone.init_cfg.checkpoint = 'tnt_b'
_base_.model.head.in_channels = _base_.pop('channels')
_base_.model.head.num_classes = _base_.model.data_preprocessor.num_classes = 1010
