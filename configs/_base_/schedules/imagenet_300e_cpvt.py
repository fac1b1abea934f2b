# As CPVT's authors train: 5e-4 for 512 images, in batches of 2048. The warm-up is DeiT's.
_base_ = './imagenet_300e_tnt.py'

optim_wrapper = dict(
    optimizer=dict(lr=2e-3),
    paramwise_cfg=dict(
        # A PEG needs no table.
        custom_keys=dict(_delete_=True, cls_token=dict(decay_mult=0.0))
    ),
)
_base_.param_scheduler[0].start_factor = 5e-4
auto_scale_lr = dict(base_batch_size=2048)
