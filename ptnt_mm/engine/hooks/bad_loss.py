"""Stop before a loss that is not a number spoils the weights that will be saved."""

import math
from typing import Any

import torch
from mmengine.hooks import Hook

from ptnt_mm.engine.train_loop import where
from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.errors import UserError

ADVICE = (
    'lower the learning rate, lengthen the warm-up, or clip gradients with '
    '--cfg-options optim_wrapper.clip_grad.max_norm=1.0, and continue with --resume'
)


@HOOKS.register_module()
class StopAtBadLossHook(Hook):
    """Raise after the first iteration whose loss is NaN or infinite; no checkpoint is saved then.

    Gradients may well be infinite: float16's loss scaling tries such steps and leaves them out.
    """

    # Before the hook that saves checkpoints.
    priority = 'VERY_HIGH'

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Raise a UserError if a loss is not finite; it names iteration, losses and images."""
        values = {name: value for name, value in (outputs or {}).items() if 'loss' in name}
        # One look at all of them: each makes a GPU wait.
        if math.isfinite(torch.as_tensor(sum(values.values())).item()):
            return
        losses = {name: torch.as_tensor(value).item() for name, value in values.items()}
        bad = [f'{name} is {value}' for name, value in losses.items() if not math.isfinite(value)]
        if bad:
            raise UserError(
                f'{where(runner)}: {", ".join(bad)}. '
                f'The batch was {", ".join(_images(data_batch)) or "without names"}. Look at these '
                'images and their annotations (ptnt check reads them all); then '
                f'{ADVICE}'
            )


def _images(data_batch: Any) -> list[str]:
    """The files that a batch was made of."""
    samples = data_batch.get('data_samples') if isinstance(data_batch, dict) else None
    if not isinstance(samples, (list, tuple)):  # several branches, as of semi-supervised training
        return []
    return [sample.get('img_path', '?') for sample in samples if hasattr(sample, 'get')]
