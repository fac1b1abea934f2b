# Mask R-CNN on strides 4 to 64. A leaf sets the arch and the channels, both from archs/.
_base_ = 'mmdet::_base_/models/mask-rcnn_r50_fpn.py'

model = dict(
    # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
    data_preprocessor=dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]),
    backbone=dict(_delete_=True, type='PyramidTNT', drop_path_rate=0.1),
    # Strides 8, 16, 32, 64 become 4, 8, 16, 32, which mmdet's pyramid and heads expect.
    neck=[
        dict(type='TransposedConvNeck'),
        dict(type='FPN', out_channels=256, num_outs=5),
    ],
)
