# Faster R-CNN with TNT-S and its ImageNet weights, COCO 1x; 41.5 AP in the paper (arXiv 2103.00112,
# section A.3): the maps of blocks 3, 6, 9 and 12 are brought to strides 4, 8, 16 and 32.
_base_ = [
    '_base_/archs/tnt_s_pretrained.py',
    'mmdet::_base_/models/faster-rcnn_r50_fpn.py',
    '_base_/detection_1x.py',
]

model = dict(
    data_preprocessor=_base_.pop('scaling'),
    backbone=dict(_delete_=True, out_indices=(2, 5, 8, 11), **_base_.pop('backbone')),
    neck=[
        dict(type='ResampledMapsNeck', in_channels=_base_.pop('channels')),
        dict(type='FPN', in_channels=[256, 256, 256, 256], out_channels=256, num_outs=5),
    ],
)
