# With gradients clipped to a norm, for a training that begins to run away.
_base_ = './retinanet_ptnt_s_1x.py'

optim_wrapper = dict(clip_grad=dict(max_norm=1.0))
