# What PyramidTNT adds to mmrotate's configs of DOTA, as parts: the leaf puts them into a whole one.
# mmrotate is for the forks of the hosts alone: docs/install.md#with-the-maintained-forks.
preprocessor_parts = dict(
    # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
    mean=[127.5, 127.5, 127.5],
    std=[127.5, 127.5, 127.5],
)
# mmrotate's optimizer for Swin-T. What decays follows ours: no tables, no one-dimensional weights.
optimizer_parts = dict(
    constructor='CheckedOptimWrapperConstructor',
    optimizer=dict(
        _delete_=True, type='AdamW', lr=1e-4, betas=(0.9, 0.999), weight_decay=0.05, fused=True
    ),
    paramwise_cfg=dict(
        custom_keys=dict(
            backbone=dict(lr_mult=0.1), relative_pos=dict(lr_mult=0.1, decay_mult=0.0)
        ),
        flat_decay_mult=0.0,
    ),
)
# Writes checkpoints atomically, so that a complete one always exists.
checkpoint_parts = dict(_delete_=True, type='WholeCheckpointHook', interval=1, max_keep_ckpts=3)
auto_scale_lr = dict(base_batch_size=2)  # mmrotate's recipes are for one GPU
