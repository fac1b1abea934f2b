# Mask R-CNN with PyramidTNT-S on strides 4 to 64. A leaf of another size sets the arch and the
# channels.
_base_ = 'mmdet::_base_/models/mask-rcnn_r50_fpn.py'

model = dict(
    # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
    data_preprocessor=dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]),
    backbone=dict(_delete_=True, type='PyramidTNT', arch='small', drop_path_rate=0.1),
    # Strides 8, 16, 32, 64 become 4, 8, 16, 32, which mmdet's pyramid and heads expect.
    neck=[
        dict(type='TransposedConvNeck', in_channels=[128, 256, 512, 512]),
        dict(type='FPN', in_channels=[128, 256, 512, 512], out_channels=256, num_outs=5),
    ],
)
