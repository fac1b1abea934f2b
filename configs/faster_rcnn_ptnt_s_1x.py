# Faster R-CNN with PyramidTNT-S, COCO 1x.
_base_ = ['mmdet::_base_/models/faster-rcnn_r50_fpn.py', '_base_/detection_1x.py']

channels = [128, 256, 512, 512]
model = dict(
    # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
    data_preprocessor=dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]),
    backbone=dict(_delete_=True, type='PyramidTNT', arch='small', drop_path_rate=0.1),
    # Strides 8, 16, 32, 64 become 4, 8, 16, 32.
    neck=[
        dict(type='TransposedConvNeck', in_channels=channels),
        dict(type='FPN', in_channels=channels, out_channels=256, num_outs=5),
    ],
)
