# Mask R-CNN on the backbone's own strides, 8 to 64. Stride 4 is the first map, doubled.
_base_ = 'mmdet::_base_/models/mask-rcnn_r50_fpn.py'

channels = [80, 160, 320, 320]
model = dict(
    # Images scaled to [-1, 1], as for the published weights.
    data_preprocessor=dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]),
    backbone=dict(_delete_=True, type='PyramidTNT', arch='tiny', out_norms=True),
    neck=[
        dict(type='FinerLevelNeck', in_channels=channels),
        dict(type='FPN', in_channels=[channels[0], *channels], out_channels=256, num_outs=5),
    ],
)
