# Five more epochs at 512 x 384, from the weights of an earlier run: --cfg-options load_from=...
_base_ = '../../../configs/demo_retinanet_ptnt_ti.py'

_base_.train_dataloader.dataset.pipeline[2].scale = (512, 384)
_base_.val_dataloader.dataset.pipeline[2].scale = (512, 384)
_base_.test_dataloader.dataset.pipeline[2].scale = (512, 384)
train_cfg = dict(max_epochs=5, val_interval=5)
optim_wrapper = dict(optimizer=dict(lr=5e-4))
_base_.param_scheduler[1].end = 5
_base_.param_scheduler[1].T_max = 5
