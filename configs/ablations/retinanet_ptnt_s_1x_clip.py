# Clips the gradient norm, for runs that start to diverge.
_base_ = '../retinanet_ptnt_s_1x.py'

optim_wrapper = dict(clip_grad=dict(max_norm=1.0))
