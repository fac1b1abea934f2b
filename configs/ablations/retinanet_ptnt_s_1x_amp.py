# Mixed precision on a GPU. bfloat16 has the range of float32, so it needs no loss scaling.
_base_ = '../retinanet_ptnt_s_1x.py'

optim_wrapper = dict(type='AmpOptimWrapper', dtype='bfloat16')
