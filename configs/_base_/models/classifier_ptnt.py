# A classifier with PyramidTNT-S. A leaf of another size sets the arch and the channels.
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(
        type='ClsDataPreprocessor',
        # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
        mean=[127.5, 127.5, 127.5],
        std=[127.5, 127.5, 127.5],
        to_rgb=True,
        num_classes=1000,
    ),
    # The head classifies the mean of the last stage's normalised tokens.
    backbone=dict(
        type='PyramidTNT', arch='small', out_indices=(3,), out_norms=True, drop_path_rate=0.1
    ),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(
        type='LinearClsHead',
        num_classes=1000,
        in_channels=512,
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'),
        init_cfg=dict(type='TruncNormal', layer='Linear', std=0.02),
    ),
    # One or the other for each batch.
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8), dict(type='CutMix', alpha=1.0)]),
)
