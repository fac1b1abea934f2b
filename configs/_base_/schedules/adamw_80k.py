# As adamw_160k.py, half as long, with mmseg's usual batch for Cityscapes: 4 GPUs x 2 images.
_base_ = './adamw_160k.py'

train_cfg = dict(max_iters=80_000, val_interval=8_000)
_base_.param_scheduler[1].end = 80_000
auto_scale_lr = dict(base_batch_size=8)
