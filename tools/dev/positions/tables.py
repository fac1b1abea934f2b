# PyramidTNT-Ti with its published position tables on the demo set, for half the demo's epochs:
# docs/family.md compares it with its neighbours in this folder.
_base_ = '../../../configs/demo_retinanet_ptnt_ti.py'

epochs = 7
train_cfg = dict(max_epochs=epochs, val_interval=epochs)
_base_.param_scheduler[1].update(end=epochs, T_max=epochs)
