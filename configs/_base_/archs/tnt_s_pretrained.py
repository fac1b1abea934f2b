# TNT-S with its ImageNet weights, for a detector or a segmenter: a leaf takes the backbone, the
# scaling of its images and the channels of its map.
_base_ = './tnt_s.py'

# The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
scaling = dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5])
backbone = dict(
    type='TNT',
    arch=_base_.pop('arch'),
    drop_path_rate=0.1,
    # One of `ptnt weights`, downloaded once; offline, the error states where to put it.
    init_cfg=dict(type='Pretrained', checkpoint='tnt_s'),
)
