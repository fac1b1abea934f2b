# PyramidTNT-S for Mask2Former, as parts: mmdet and mmseg have whole configs of Mask2Former, into
# which a leaf puts them.
channels = [128, 256, 512, 512]
model_parts = dict(
    # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
    data_preprocessor=dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]),
    backbone=dict(_delete_=True, type='PyramidTNT', arch='small', drop_path_rate=0.3),
    # Strides 8, 16, 32, 64 become 4, 8, 16, 32, which the pixel decoder expects. Best of four necks
    # in a short run: docs/research/results.md#necks-for-mask2former.
    neck=[
        dict(type='TransposedConvNeck', in_channels=channels),
        dict(type='FPN', in_channels=channels, out_channels=256, num_outs=4),
    ],
)
# What decays follows Swin's config: no tables, no one-dimensional weights.
optimizer_parts = dict(
    constructor='CheckedOptimWrapperConstructor',
    paramwise_cfg=dict(
        custom_keys=dict(
            backbone=dict(_delete_=True, lr_mult=0.1),
            relative_pos=dict(lr_mult=0.1, decay_mult=0.0),
        ),
        flat_decay_mult=0.0,
    ),
)
