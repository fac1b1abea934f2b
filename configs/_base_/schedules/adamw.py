# AdamW as in the paper (arXiv 2201.00978, section 4.2); the schedules set rates and lengths.
optim_wrapper = dict(
    type='OptimWrapper',
    # Refuses a custom key that matches no parameter.
    constructor='CheckedOptimWrapperConstructor',
    # fused: one kernel for all parameters, on CPU and GPU.
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.05, fused=True),
    # No decay where the authors had none: biases, one-dimensional weights, and the tables and class
    # token, which the network names in no_weight_decay(). Relative tables are decayed, as
    # in the authors' code.
    paramwise_cfg=dict(flat_decay_mult=0.0),
)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
