# Layer-wise learning rate decay: 0.9 per block towards the image, usual for 16 blocks. Our choice.
_base_ = '../retinanet_ptnt_s_1x.py'

optim_wrapper = dict(
    constructor='LayerDecayOptimWrapperConstructor', paramwise_cfg=dict(decay_rate=0.9)
)
