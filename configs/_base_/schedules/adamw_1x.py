# 12 epochs, lr / 10 after 8 and 11, as the paper says (arXiv 2201.00978, section 4.2). The warm-up
# is ours, and mmdet's: linear over 500 iterations.
_base_ = 'mmdet::_base_/schedules/schedule_1x.py'

optim_wrapper = dict(
    # Refuses a custom key that matches no parameter.
    constructor='CheckedOptimWrapperConstructor',
    optimizer=dict(_delete_=True, type='AdamW', lr=1e-4, weight_decay=0.05),
    # No decay where the authors had none: biases, one-dimensional weights, the two tables behind
    # the stem. The relative position tables are decayed, as theirs.
    paramwise_cfg=dict(
        flat_decay_mult=0.0,
        custom_keys={'outer_pos': dict(decay_mult=0.0), 'inner_pos': dict(decay_mult=0.0)},
    ),
)
