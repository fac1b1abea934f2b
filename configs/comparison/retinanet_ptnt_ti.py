# The demo's RetinaNet, changed to learn within three minutes on one thread. The configs of the
# other backbones inherit from this one.
_base_ = ['../demo_retinanet_ptnt_ti.py', './_base_/recipe.py']

max_epochs = 8
train_cfg = dict(max_epochs=max_epochs, val_interval=max_epochs)
_base_.param_scheduler[1].end = _base_.param_scheduler[1].T_max = max_epochs
# Saves nothing to resume from: an interrupted run starts over.
default_hooks = dict(checkpoint=dict(interval=max_epochs, save_optimizer=False))
train_dataloader = dict(batch_size=_base_.batch_size)
_base_.train_dataloader.dataset.pipeline[2].scale = _base_.image_scale
_base_.val_dataloader.dataset.pipeline[2].scale = _base_.image_scale
_base_.test_dataloader.dataset.pipeline[2].scale = _base_.image_scale

# With random weights it learns faster with normalisation, like the demo's Mask R-CNN. GroupNorm in
# the head, because levels with different statistics share it.
_base_.model.neck[1].norm_cfg = dict(type='BN')
model = dict(
    bbox_head=dict(
        norm_cfg=dict(type='GN', num_groups=8), anchor_generator=dict(octave_base_scale=2)
    )
)
