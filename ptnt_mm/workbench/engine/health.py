"""Warn when strides are wrong, when an evaluation is empty, or when training waits for data."""

from typing import Any

from mmengine.dist import is_main_process
from mmengine.hooks import Hook

from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.findings import Severity
from ptnt_mm.utils.wrappers import unwrapped
from ptnt_mm.workbench.check.network import check_strides
from ptnt_mm.workbench.config.view import ConfigView

NO_FIGURES = (
    'the evaluation produced no numbers: no image has predictions. This is common after a short '
    'run, or one from random initialisation: train for longer'
)


@HOOKS.register_module()
class HealthHook(Hook):
    """Warn, once each, about wrong strides, empty evaluations and slow data loading.

    Before the first iteration, the strides of heads are compared with those of their maps: mmdet
    trains with wrong ones without an error.

    Loading is slow if it takes more than half of the time, averaged over 50 iterations.
    """

    # After IterTimerHook, which measures the times.
    priority = 'LOW'

    def __init__(self):
        self._warned: set[str] = set()

    def before_train(self, runner: Any) -> None:
        """Compare strides: on a small image, which takes less than a second."""
        if not is_main_process():
            return
        model = unwrapped(runner.model)
        for finding in check_strides(ConfigView(runner.cfg), model):
            if finding.severity is Severity.ERROR:
                runner.logger.warning(f'{finding}: {finding.advice}')
        model.train()

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Check the times of the last 50 iterations, in every 50th."""
        if not self.every_n_train_iters(runner, 50):
            return
        scalars = runner.message_hub.log_scalars
        if 'train/time' not in scalars or 'train/data_time' not in scalars:
            return
        whole, loading = scalars['train/time'].mean(50), scalars['train/data_time'].mean(50)
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

    def _warn(self, runner: Any, reason: str, message: str) -> None:
        """Log a warning, unless the same one was logged before."""
        if reason not in self._warned:
            self._warned.add(reason)
            runner.logger.warning(message)
