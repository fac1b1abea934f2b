"""Refuse a checkpoint that does not fit the model."""

from typing import Any

from mmengine.hooks import Hook
from mmengine.optim import OptimWrapper
from mmengine.runner import BaseLoop

from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.wrappers import unwrapped
from ptnt_mm.weights.class_names import compare_class_names
from ptnt_mm.weights.fit import BackboneOfWhole, Whole
from ptnt_mm.weights.mmengine import require_fitting, require_safe_loading, without_config


@HOOKS.register_module()
class CheckpointGuardHook(Hook):
    """Refuse a checkpoint that does not fit the model, before any weight is copied.

    To resume and to test, every weight of the model must be in the checkpoint with its shape. To
    fine-tune from one (``load_from``), the backbone's must; position tables of another pretraining
    size are converted, and heads and necks may differ. Class names must not be those of the data in
    another order.

    From the start of a run on, MMEngine loads every checkpoint of the process safely, see
    :func:`~ptnt_mm.weights.mmengine.require_safe_loading`.
    """

    # EMAHook (NORMAL) copies from the checkpoint: the check comes first.
    priority = 'HIGH'

    def before_run(self, runner: Any) -> None:
        """Load safely: the model is built by now, and its weights are loaded after this."""
        require_safe_loading()

    def after_load_checkpoint(self, runner: Any, checkpoint: dict) -> None:
        """Raise a UserError unless the loaded weights can be copied into the model."""
        checkpoint.update(without_config(checkpoint))
        model = unwrapped(runner.model)
        source = str(runner._load_from or 'the checkpoint')
        starts = isinstance(runner.optim_wrapper, OptimWrapper) and not runner._resume
        scope = BackboneOfWhole() if starts else Whole()
        require_fitting(checkpoint, model, scope, source)
        loops = (runner._train_loop, runner._test_loop, runner._val_loop)
        loop = next((loop for loop in loops if isinstance(loop, BaseLoop)), None)
        if loop is not None:
            data = getattr(loop.dataloader.dataset, 'metainfo', None)
            meta = checkpoint.get('meta') or {}
            if different := compare_class_names(meta, data, model, source):
                runner.logger.warning(different)
