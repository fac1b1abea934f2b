# TNT on ImageNet-1k, as its authors train. A leaf sets the arch and the channels, both from archs/.
_base_ = [
    './models/classifier_tnt.py',
    './datasets/imagenet_224.py',
    './schedules/imagenet_300e_tnt.py',
    './default_runtime_mmpretrain_ema.py',
]
