# TNT-S on ImageNet-1k, as its authors train. A leaf of another size sets the arch and the channels.
_base_ = [
    './models/classifier_tnt.py',
    './datasets/imagenet_224.py',
    './schedules/imagenet_300e_tnt.py',
    './default_runtime_mmpretrain_ema.py',
]
