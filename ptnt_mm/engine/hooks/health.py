"""How well a long training runs: throughput, data loading, memory, gradients."""

import math
import os
import statistics
from collections import deque
from pathlib import Path
from typing import Any

import torch
from mmengine.dist import get_world_size
from mmengine.hooks import Hook
from torch import Tensor
from torch.optim import Optimizer

from ptnt_mm.engine.train_loop import ends_a_pass
from ptnt_mm.registry import HOOKS

NO_FIGURES = (
    'the evaluation has no figures: nothing was found in any image. That is usual after a short '
    'training, or one from random weights: train for longer'
)

_STATM = Path('/proc/self/statm')


@HOOKS.register_module()
class HealthHook(Hook):
    """Log images a second, the share of data loading, memory and the norm of the gradients.

    It warns, once for each reason, when an evaluation found nothing, when data loading takes more
    than half of the time, when memory grows by more than a tenth in each of three passes through
    the data, and when the norm of the gradients is more than a hundred times its median so far. It
    looks at gradients in every ``interval``-th iteration alone. Where they are clipped, the norm is
    that after clipping; MMEngine logs the other as grad_norm.

    Args:
        interval: Iterations between two looks.

    Raises:
        ValueError: if the interval is below 1.
    """

    # Before the hook that logs.
    priority = 'NORMAL'

    def __init__(self, interval: int = 50):
        if interval < 1:
            raise ValueError(f'HealthHook: interval is {interval}: expected 1 or more')
        self.interval = interval
        self._norms: deque[float] = deque(maxlen=100)
        self._resident: list[int] = []
        self._warned: set[str] = set()
        self._iteration = 0

    def before_train(self, runner: Any) -> None:
        """See the gradients just before they are used, if a single optimizer uses them."""
        self._iteration = runner.iter
        optimizer = getattr(runner.optim_wrapper, 'optimizer', None)
        if isinstance(optimizer, Optimizer):
            optimizer.register_step_pre_hook(self._look_at_gradients)

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Add what was seen to the scalars that MMEngine logs."""
        self._iteration = runner.iter + 1
        if ends_a_pass(runner):
            self._check_memory(runner)
        if not self.every_n_train_iters(runner, self.interval):
            return
        scalars = runner.message_hub.log_scalars
        times = (scalars.get(f'train/{name}') for name in ('time', 'data_time'))
        whole, loading = (buffer.mean(self.interval) if buffer else 0.0 for buffer in times)
        inputs = data_batch.get('inputs') if isinstance(data_batch, dict) else None
        if whole > 0:
            runner.message_hub.update_scalar('train/data_share', loading / whole)
        if whole > 0 and isinstance(inputs, (list, Tensor)):
            images = len(inputs) * get_world_size()
            runner.message_hub.update_scalar('train/images_per_second', images / whole)
        runner.message_hub.update_scalar('train/memory_mib', _memory() / 2**20)
        if self._norms:
            runner.message_hub.update_scalar('train/gradient_norm', self._norms[-1])
            self._check_norm(runner)
        if loading > 0.5 * whole > 0:
            self._warn(
                runner,
                'loading',
                f'data loading takes {loading / whole:.0%} of the time: more workers '
                '(train_dataloader.num_workers), or faster storage, would speed training up',
            )

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        """Explain an evaluation without a result, which mmdet reports as an error."""
        if metrics is not None and not metrics:
            self._warn(runner, 'figures', NO_FIGURES)

    def _check_memory(self, runner: Any) -> None:
        """Compare memory with the passes before."""
        self._resident.append(_memory())
        last = self._resident[-4:]
        grows = [later > 1.1 * earlier for earlier, later in zip(last, last[1:], strict=False)]
        if len(grows) == 3 and all(grows):
            sizes = ', '.join(f'{size / 2**20:.0f}' for size in last)
            message = f'memory grows with every pass through the data: {sizes} MiB'
            self._warn(runner, 'memory', message)

    def _look_at_gradients(self, optimizer: Optimizer, *_: Any) -> None:
        if (self._iteration + 1) % self.interval:
            return
        parameters = [p for group in optimizer.param_groups for p in group['params']]
        gradients = [p.grad for p in parameters if p.grad is not None]
        norm = float(torch.nn.utils.get_total_norm(gradients))
        # A fused optimizer takes the scale of float16's gradients away itself.
        norm /= float(getattr(optimizer, 'grad_scale', None) or 1)
        if math.isfinite(norm):
            self._norms.append(norm)

    def _check_norm(self, runner: Any) -> None:
        norm, usual = self._norms[-1], statistics.median(self._norms)
        if len(self._norms) >= 5 and norm > 100 * usual:
            self._warn(
                runner,
                'norm',
                f'the norm of the gradients is {norm:.3g}, usually {usual:.3g}: '
                'clip it (optim_wrapper.clip_grad.max_norm) or lower the learning rate',
            )

    def _warn(self, runner: Any, reason: str, message: str) -> None:
        """Log a warning, unless there was one for the same reason."""
        if reason not in self._warned:
            self._warned.add(reason)
            runner.logger.warning(message)


def _memory() -> int:
    """Bytes: the most that torch gave out on a GPU, or the resident set of this process."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    if not _STATM.exists():
        return 0
    return int(_STATM.read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE')
