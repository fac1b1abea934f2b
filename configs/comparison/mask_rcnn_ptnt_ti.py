# The demo's Mask R-CNN, changed to learn within three minutes on one thread. The configs of the
# other backbones inherit from this one.
_base_ = ['../demo_mask_rcnn_ptnt_ti.py', './_base_/recipe.py']

max_epochs = 5
train_cfg = dict(max_epochs=max_epochs, val_interval=max_epochs)
_base_.param_scheduler[1].end = _base_.param_scheduler[1].T_max = max_epochs
# Saves nothing to resume from: an interrupted run starts over.
default_hooks = dict(checkpoint=dict(interval=max_epochs, save_optimizer=False))
train_dataloader = dict(batch_size=_base_.batch_size)
_base_.train_dataloader.dataset.pipeline[2].scale = _base_.image_scale
_base_.val_dataloader.dataset.pipeline[2].scale = _base_.image_scale
_base_.test_dataloader.dataset.pipeline[2].scale = _base_.image_scale

model = dict(
    rpn_head=dict(anchor_generator=dict(scales=[2])),
    roi_head=dict(
        bbox_roi_extractor=dict(finest_scale=14), mask_roi_extractor=dict(finest_scale=14)
    ),
)
