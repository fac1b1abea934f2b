# With learning rates that fall towards the image: 0.9 per block, as is usual for 16 of them. Ours.
_base_ = './retinanet_ptnt_s_1x.py'

optim_wrapper = dict(
    constructor='LayerDecayOptimWrapperConstructor', paramwise_cfg=dict(decay_rate=0.9)
)
