"""Stop a run before NaN or infinity replaces a good checkpoint."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.dist import all_gather_object
from mmengine.hooks import EMAHook, Hook
from mmengine.optim import OptimWrapper
from mmengine.runner import IterBasedTrainLoop
from torch import Tensor

from ptnt_mm.hooks.checkpointing import WholeCheckpointHook
from ptnt_mm.hooks.run_checkpoints import describe_last_checkpoint
from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import first_few
from ptnt_mm.utils.wrappers import unwrapped

_SMALLER_STEPS = (
    'lower the learning rate, lengthen the warm-up, or clip gradients with '
    '`optim_wrapper.clip_grad.max_norm=1.0`, and continue with `resume=auto`'
)
_CHECK_THE_SCHEDULE = (
    'The schedule gives no usable learning rate: check optim_wrapper.optimizer.lr and '
    'param_scheduler, and continue with `resume=auto`'
)
_START_OTHERWISE = (
    'Use another checkpoint or other weights; a buffer that is infinite on purpose needs '
    'register_buffer(..., persistent=False)'
)


@HOOKS.register_module()
class StopAtNaNHook(Hook):
    """Stop the run in all processes when a number it depends on is NaN or infinite.

    - The learning rates: before each iteration.
    - The losses: after each iteration. Gradients may be infinite: with float16, loss scaling tries
      such steps and skips them.
    - The weights, averaged weights and the optimizer's state: before and after training, and
      before each evaluation.
    - All of these and the schedules: before a checkpoint is written, after all other hooks have
      changed what it contains. The log's history is not checked.

    Nothing is written in that case, and the last good checkpoint stays, provided that
    :class:`WholeCheckpointHook` writes checkpoints.
    """

    # Before EMAHook swaps weights, and before the hook that saves after an iteration.
    priority = 'VERY_HIGH'

    def before_train(self, runner: Any) -> None:
        """Check the starting weights."""
        if bad := bad_entries(runner):
            advice = _CHECK_THE_SCHEDULE if _is_the_schedule(bad) else _START_OTHERWISE
            raise UserError(f'training starts from NaN or infinity in {first_few(bad)}. {advice}')
        # Registered late, to be called after all other hooks.
        runner.register_hook(_CheckCheckpoint(), 'LOWEST')

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        """Raise a UserError if a learning rate is not finite, before it ruins the weights."""
        for name, rates in runner.optim_wrapper.get_lr().items():
            # Groups share a few values.
            for rate in set(rates):
                if not torch.as_tensor(rate).isfinite().all():
                    kept, _ = describe_last_checkpoint(Path(runner.work_dir))
                    raise UserError(
                        f'{_iteration(runner)}: {name} is {float(rate)}; {kept}. '
                        f'{_CHECK_THE_SCHEDULE}'
                    )

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Raise a UserError if a loss is not finite; it names iteration, losses and images."""
        values = {name: value for name, value in (outputs or {}).items() if 'loss' in name}
        # One check for all of them, because each makes the CPU wait for the GPU.
        if math.isfinite(torch.as_tensor(sum(values.values())).item()):
            return
        losses = {name: torch.as_tensor(value).item() for name, value in values.items()}
        bad = [f'{name} is {value}' for name, value in losses.items() if not math.isfinite(value)]
        if bad:
            raise UserError(
                f'{_iteration(runner)}: {", ".join(bad)}. '
                f'The batch was {", ".join(_images(data_batch)) or "without names"}. Check these '
                'images and their annotations (ptnt check reads them all); then '
                f'{_SMALLER_STEPS}'
            )

    def before_val_epoch(self, runner: Any) -> None:
        """Check before an evaluation, which takes time."""
        _stop_if(bad_entries(runner), runner, runner.iter)

    def after_train(self, runner: Any) -> None:
        """Check the result, even if no checkpoint was due."""
        _stop_if(bad_entries(runner), runner, runner.iter)


class _CheckCheckpoint(Hook):
    """Check a checkpoint right before it is written; only the main process writes."""

    def before_save_checkpoint(self, runner: Any, checkpoint: dict) -> None:
        """Raise a UserError that names the entries that are not finite."""
        logged = ('meta', 'message_hub')
        entries = {key: value for key, value in checkpoint.items() if key not in logged}
        _stop_if(list(_not_finite(entries)), runner, checkpoint['meta']['iter'])


def bad_entries(runner: Any) -> list[str]:
    """Find NaN and infinity in weights, averaged weights and the optimizer's state.

    All processes must call this, and all get the same result: if only one stopped, the others would
    wait for it forever.

    Args:
        runner: A runner; one that does not train has nothing to check.
    """
    if not isinstance(runner.optim_wrapper, OptimWrapper):
        return []
    model = unwrapped(runner.model)
    entries = dict(state_dict=model.state_dict(), optimizer=runner.optim_wrapper.state_dict())
    for hook in runner.hooks:
        if hasattr(hook, 'ema_model'):
            entries['ema_state_dict'] = hook.ema_model.state_dict()
    return next(filter(None, all_gather_object(list(_not_finite(entries)))), [])


def _not_finite(entry: Any, path: str = '') -> Iterator[str]:
    """Yield the paths of NaN and infinity in nested containers, such as 'state_dict.neck.bias'.

    Numbers outside tensors and arrays may be infinite, such as the initial best score of
    ReduceOnPlateau; learning rates may not.
    """
    if isinstance(entry, Mapping):
        for key, value in entry.items():
            yield from _not_finite(value, f'{path}.{key}' if path else str(key))
    elif isinstance(entry, (list, tuple)):
        for i, value in enumerate(entry):
            yield from _not_finite(value, f'{path}[{i}]')
    elif isinstance(entry, Tensor):
        # torch cannot check sparse and quantized tensors.
        checked = entry.is_floating_point() or entry.is_complex()
        if checked and entry.layout is torch.strided and not entry.isfinite().all():
            yield path
    elif isinstance(entry, np.ndarray):
        if np.issubdtype(entry.dtype, np.inexact) and not np.isfinite(entry).all():
            yield path
    elif isinstance(entry, (float, np.floating)):
        is_rate = path.endswith('lr')
        if math.isnan(entry) or (is_rate and math.isinf(entry)):
            yield path


def _stop_if(bad: list[str], runner: Any, iterations: int) -> None:
    """Raise a UserError if there are bad entries after this iteration."""
    if not bad:
        return
    advice = f'No loss was bad, so a step was too large: {_SMALLER_STEPS}'
    if _is_the_schedule(bad):
        advice = _CHECK_THE_SCHEDULE
    elif writers := _writers(runner):
        advice = (
            f'Either {first_few(writers)} wrote it in before_save_checkpoint: train without this '
            f'hook. Or a step was too large: {_SMALLER_STEPS}'
        )
    kept, _ = describe_last_checkpoint(Path(runner.work_dir))
    raise UserError(
        f'iteration {iterations}: NaN or infinity in {first_few(bad)}. Nothing was saved; '
        f'{kept}. {advice}'
    )


def _is_the_schedule(bad: list[str]) -> bool:
    return any(path.endswith('lr') or path.startswith('param_schedulers') for path in bad)


def _writers(runner: Any) -> list[str]:
    """Names of hooks that may change a checkpoint, without MMEngine's and this package's."""
    kinds = {type(hook) for hook in runner.hooks} - {_CheckCheckpoint, WholeCheckpointHook, EMAHook}
    unchanged = Hook.before_save_checkpoint
    return sorted(kind.__name__ for kind in kinds if kind.before_save_checkpoint is not unchanged)


def _images(data_batch: Any) -> list[str]:
    """Names of the files of a batch."""
    samples = data_batch.get('data_samples') if isinstance(data_batch, dict) else None
    if not isinstance(samples, (list, tuple)):  # several branches, as in semi-supervised training
        return []
    return [sample.get('img_path', '?') for sample in samples if hasattr(sample, 'get')]


def _iteration(runner: Any) -> str:
    """The current iteration, in words, counted from 1."""
    iteration = f'iteration {runner.iter + 1}'
    if isinstance(runner.train_loop, IterBasedTrainLoop):
        return iteration
    return f'epoch {runner.epoch + 1}, {iteration}'
