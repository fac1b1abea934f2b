# A backbone imitates a teacher on images without labels; `ptnt pretrain` sets the lengths.
_base_ = './hooks.py'

custom_imports = dict(imports=['ptnt_mm.workbench', 'ptnt_mm.weights.safe_loading'])
default_scope = 'mmengine'
max_iters = 12_500

model = dict(
    type='FeatureDistiller',
    data_preprocessor=dict(
        type='ImgDataPreprocessor', mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]
    ),
    # Better than MapMSE with a single layer: docs/research/pretrain.md has the comparison.
    loss=dict(type='MapCosine'),
    hidden=512,
    size=128,
)

# On several GPUs: the norm of a map that the teacher lacks gets no gradient.
find_unused_parameters = True

train_dataloader = dict(
    batch_size=16,
    num_workers=1,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        type='UnlabelledImages',
        data_root='data/photos',
        pipeline=[dict(type='LoadPicture'), dict(type='RandomView', size=128)],
    ),
)
train_cfg = dict(type='RepeatableIterBasedTrainLoop', max_iters=max_iters)

optim_wrapper = dict(
    type='OptimWrapper',
    constructor='CheckedOptimWrapperConstructor',
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05, fused=True),
    paramwise_cfg=dict(flat_decay_mult=0.0),
    clip_grad=dict(max_norm=5.0),
)
auto_scale_lr = dict(base_batch_size=16)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=100),
    dict(
        type='CosineAnnealingLR', eta_min=0, by_epoch=False, begin=0, T_max=max_iters, end=max_iters
    ),
]

default_hooks = dict(
    logger=dict(type='LoggerHook', interval=50),
    checkpoint=dict(type='WholeCheckpointHook', by_epoch=False, interval=500, max_keep_ckpts=1),
)
# Photographs from many sources: whatever cannot be read is left out.
custom_hooks = [
    dict(hook, limit=1_000_000) if hook['type'] == 'SkipCorruptImagesHook' else hook
    for hook in _base_.custom_hooks
]
log_processor = dict(type='LogProcessor', window_size=50, by_epoch=False)
randomness = dict(seed=0)
