"""Refuse a checkpoint that does not fit the model."""

from typing import Any

from mmengine.hooks import Hook
from mmengine.model import BaseTTAModel, is_model_wrapper
from mmengine.optim import OptimWrapper

from ptnt_mm.engine.safe_loading import without_config
from ptnt_mm.engine.strict_loading import require_all_weights, require_backbone
from ptnt_mm.registry import HOOKS


@HOOKS.register_module()
class CheckpointGuardHook(Hook):
    """Refuse a checkpoint that does not fit the model, before any weight is copied.

    To resume and to test, every weight of the model must be in the checkpoint with its shape. To
    fine-tune from one (``load_from``), the backbone's must; position tables of another pretraining
    size are converted, and heads and necks may differ.
    """

    # EMAHook (NORMAL) copies from the checkpoint: the check comes first.
    priority = 'HIGH'

    def after_load_checkpoint(self, runner: Any, checkpoint: dict) -> None:
        """Raise a CheckpointError unless the loaded weights can be copied into the model."""
        checkpoint.update(without_config(checkpoint))
        model = runner.model  # or a wrapper: DistributedDataParallel, test-time augmentation
        while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
            model = model.module
        source = str(runner._load_from or 'the checkpoint')
        if isinstance(runner.optim_wrapper, OptimWrapper) and not runner._resume:
            require_backbone(checkpoint, model, source)
        else:
            require_all_weights(checkpoint, model, source)
