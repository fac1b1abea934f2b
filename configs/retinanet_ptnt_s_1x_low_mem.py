# For GPUs of 8 GB: blocks are computed again in the backward pass, and two batches of one image
# make a step. The same learning rate belongs to it.
_base_ = './retinanet_ptnt_s_1x.py'

model = dict(backbone=dict(with_cp=True))
train_dataloader = dict(batch_size=1)
optim_wrapper = dict(accumulative_counts=2)
