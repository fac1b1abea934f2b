# PyramidTNT-S on ImageNet-1k at 256 pixels, as its authors train. A leaf of another size sets the
# arch and the channels.
_base_ = [
    './models/classifier_ptnt.py',
    './datasets/imagenet_256.py',
    './schedules/imagenet_300e.py',
    './default_runtime_mmpretrain_ema.py',
]
