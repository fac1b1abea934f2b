# For GPUs with little memory: recomputes blocks in the backward pass, and accumulates the gradients
# of two single images per step. The batch per step, and so the learning rate, stays the same.
_base_ = '../retinanet_ptnt_s_1x.py'

model = dict(backbone=dict(with_cp=True))
train_dataloader = dict(batch_size=1)
optim_wrapper = dict(accumulative_counts=2)
