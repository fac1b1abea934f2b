# Faster R-CNN with TNT-S and its ImageNet weights, COCO 1x; 41.5 AP in the paper (arXiv 2103.00112,
# section A.3): the maps of blocks 3, 6, 9 and 12 are brought to strides 4, 8, 16 and 32.
_base_ = ['mmdet::_base_/models/faster-rcnn_r50_fpn.py', '_base_/detection_1x.py']

model = dict(
    # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
    data_preprocessor=dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]),
    backbone=dict(
        _delete_=True,
        type='TNT',
        arch='small',
        out_indices=(2, 5, 8, 11),
        drop_path_rate=0.1,
        # One of `ptnt weights`, downloaded once; offline, the error states where to put it.
        init_cfg=dict(type='Pretrained', checkpoint='tnt_s'),
    ),
    neck=[
        dict(type='ResampledMapsNeck', in_channels=384),
        dict(type='FPN', in_channels=[256, 256, 256, 256], out_channels=256, num_outs=5),
    ],
)
