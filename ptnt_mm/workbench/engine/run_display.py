"""Show on the terminal how far a run is, how it does, and how much longer it takes."""

import os
import re
import sys
import time
from collections.abc import Mapping
from typing import Any, Self

import torch
from mmengine.dist import get_world_size, is_main_process
from mmengine.hooks import Hook, LoggerHook
from mmengine.logging import MessageHub
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop, Runner
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from ptnt_mm.utils.console import is_terminal
from ptnt_mm.utils.metrics import main_metrics, metric_names, metric_text
from ptnt_mm.utils.terminal import show_wrapped
from ptnt_mm.utils.text import duration, format_bytes
from ptnt_mm.workbench.engine.class_scores import Rows, class_scores

_USUAL_INTERVAL = 10  # iterations
_REFRESH = 0.1  # seconds between two drawings of a bar
_PATIENCE = 60  # seconds of an evaluation without a line


class RunDisplay(Hook):
    """A bar for the epoch, or for a run without epochs, and a line for each evaluation.

    On a terminal, each epoch leaves one line. In a file or a pipe, there are no bars: a line for
    each interval of MMEngine's ``LoggerHook``, and for each minute of an evaluation. It is a
    context that removes the bars at the end; outside of it, and in all processes but the first,
    nothing is shown.
    """

    # After the hooks that save checkpoints and note the best.
    priority = 'LOWEST'

    def __init__(self):
        self.classes: Rows = []
        """The scores by class of the best evaluation, or of the last one if none is best."""
        self.summary = ''
        """The best scores and when they were reached, or the last ones if none is best."""
        self.took = 0.0
        """Seconds that the context lasted."""
        self._is_active = False
        self._bars: Progress | None = None  # None without a terminal
        self._epoch: TaskID | None = None
        self._evaluation: TaskID | None = None
        self._drawn = self._said = self._begun = self._epoch_begun = self._evaluation_begun = 0.0
        self._evaluations: list[float] = []  # their durations in seconds

    def __enter__(self) -> Self:
        self._is_active = is_main_process()
        self._begun = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_active = False
        self.took = time.monotonic() - self._begun
        if self._bars:
            self._bars.stop()
            self._bars = self._epoch = self._evaluation = None

    def before_train(self, runner: Any) -> None:
        """Say where a resumed run continues, or which detector a new one starts from."""
        if self._is_active:
            self._start()
            if runner.iter:
                unit = 'epoch' if _has_epochs(runner) else 'iteration'
                show_wrapped(f'Continuing after {unit} {_steps(runner)[unit]}')
            elif runner._load_from:
                show_wrapped(f'Starting from the whole model in {runner._load_from}')

    def before_val(self, runner: Any) -> None:
        """Start the bars, if training has not."""
        self._start()

    def before_test(self, runner: Any) -> None:
        """Start the bars."""
        self._start()

    def before_train_epoch(self, runner: Any) -> None:
        """Begin a bar."""
        self._epoch_begun = time.monotonic()
        if self._bars:
            title, total = _title_and_length(runner)
            self._epoch = self._bars.add_task(title, total=total, status='')
            self._bars.refresh()

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Move the bar, or print a line in an interval's last iteration."""
        if not self._is_active:
            return
        title, total = _title_and_length(runner)
        done = batch_idx + 1  # in a run without epochs, of all iterations
        if self._bars and self._epoch is not None:
            if self._is_due():
                status = self._status(runner, data_batch)
                self._bars.update(self._epoch, completed=done, status=status, refresh=True)
        elif not self._bars and (done % _interval(runner) == 0 or done == total):
            show_wrapped(f'{title}  {done}/{total}  {self._status(runner, data_batch)}')

    def after_train_epoch(self, runner: Any) -> None:
        """Remove the bar, and leave a line."""
        if self._bars and self._epoch is not None:
            self._bars.remove_task(self._epoch)
            self._epoch = None
            if _has_epochs(runner):
                title, _ = _title_and_length(runner)
                took = duration(time.monotonic() - self._epoch_begun)
                show_wrapped('  '.join((title, *_loss(runner), took)))

    def before_val_epoch(self, runner: Any) -> None:
        """Begin the bar of an evaluation."""
        self._begin_evaluation(runner.val_loop)

    def before_test_epoch(self, runner: Any) -> None:
        """Begin the bar of a test."""
        self._begin_evaluation(runner.test_loop)

    def after_val_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        """Move the bar of an evaluation."""
        self._advance_evaluation(runner.val_loop, batch_idx + 1)

    def after_test_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        """Move the bar of a test."""
        self._advance_evaluation(runner.test_loop, batch_idx + 1)

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        """Remove the bar of an evaluation, and leave a line with its main scores and the best."""
        self._end_evaluation()
        if not metrics:
            return
        best = best_scores(runner.message_hub, metrics)
        now = _steps(runner)
        if not best or any(now[unit] == step for _, unit, step in best):
            self.classes = class_scores(getattr(runner.val_loop, 'evaluator', None))
        names = metric_names(metrics)
        scores = [f'{names[key]} {metric_text(key, metrics[key])}' for key in main_metrics(metrics)]
        bests = [f'best {score} ({unit} {step})' for score, unit, step in best]
        self.summary = '  '.join(bests or scores)
        if self._is_active:
            show_wrapped('  '.join(('  evaluation', *scores, *bests)))

    def after_test_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        """Remove the bar of a test."""
        self._end_evaluation()
        self.classes = class_scores(getattr(runner.test_loop, 'evaluator', None))

    def _start(self) -> None:
        """Start the bars on a terminal.

        The hooks draw them: a thread of rich could hold a lock while a worker of a data loader is
        forked, and the worker would wait for it forever.
        """
        console = Console(stderr=True)
        on_terminal = is_terminal(sys.stdout) and console.is_interactive
        if self._is_active and on_terminal and self._bars is None:
            columns = (
                TextColumn('{task.description}'),
                BarColumn(bar_width=16),
                MofNCompleteColumn(),
                TextColumn('{task.fields[status]}'),
            )
            self._bars = Progress(*columns, console=console, auto_refresh=False, transient=True)
            self._bars.start()

    def _is_due(self) -> bool:
        """Whether it is time to draw the bar again."""
        now = time.monotonic()
        if now - self._drawn < _REFRESH:
            return False
        self._drawn = now
        return True

    def _begin_evaluation(self, loop: Any) -> None:
        self._evaluation_begun = self._said = time.monotonic()
        if self._bars:
            total = len(loop.dataloader)
            self._evaluation = self._bars.add_task('  evaluation', total=total, status='')
            self._bars.refresh()

    def _advance_evaluation(self, loop: Any, done: int) -> None:
        if self._bars and self._evaluation is not None:
            if self._is_due():
                self._bars.update(self._evaluation, completed=done, refresh=True)
        elif self._is_active and not self._bars and time.monotonic() - self._said > _PATIENCE:
            self._said = time.monotonic()
            show_wrapped(f'  evaluation  {done}/{len(loop.dataloader)}')

    def _end_evaluation(self) -> None:
        self._evaluations.append(time.monotonic() - self._evaluation_begun)
        if self._bars and self._evaluation is not None:
            self._bars.remove_task(self._evaluation)
            self._evaluation = None

    def _status(self, runner: Any, batch: Any) -> str:
        """Loss, speed, memory and remaining time: 'loss 0.421  5.7 images/s  12 min left'."""
        hub = runner.message_hub
        parts = _loss(runner)
        inputs = batch.get('inputs') if isinstance(batch, Mapping) else None
        if isinstance(inputs, list | torch.Tensor) and 'train/time' in hub.log_scalars:
            seconds = hub.get_scalar('train/time').mean(_USUAL_INTERVAL)
            speed = len(inputs) * get_world_size() / seconds
            parts.append(f'{speed:.1f} images/s' if speed >= 0.1 else f'{1 / speed:.0f} s/image')
        if torch.cuda.is_available() and (used := torch.cuda.max_memory_allocated()):
            parts.append(format_bytes(used))
        if 'eta' in hub.runtime_info:
            each = sum(self._evaluations) / max(len(self._evaluations), 1)
            left = hub.get_info('eta') + each * evaluations_left(runner)
            parts.append(f'{duration(left)} left')
        return '  '.join(parts)


def display_of(runner: Runner) -> RunDisplay:
    """The display among the hooks of a runner; a new one, which shows nothing, if it has none."""
    found = (hook for hook in runner.hooks if isinstance(hook, RunDisplay))
    return next(found, RunDisplay())


def best_scores(hub: MessageHub, metrics: Mapping[str, object]) -> list[tuple[str, str, int]]:
    """The best scores for which MMEngine keeps checkpoints: ('AP 0.448', 'epoch', 3).

    Args:
        hub: Where MMEngine's ``CheckpointHook`` notes them.
        metrics: The last evaluation.
    """
    infos, names, found = hub.runtime_info, metric_names(metrics), []
    for key in metrics:
        for suffix in ('', f'_{key}'):
            score, file = infos.get(f'best_score{suffix}'), infos.get(f'best_ckpt{suffix}')
            in_file = re.escape(f'best_{key.replace("/", "_")}')
            when = re.search(rf'{in_file}_(epoch|iter)_(\d+)', str(file))
            if score is not None and when:
                unit = 'epoch' if when[1] == 'epoch' else 'iteration'
                found.append((f'{names[key]} {metric_text(key, score)}', unit, int(when[2])))
    return found


def _has_epochs(runner: Any) -> bool:
    return isinstance(runner.train_loop, EpochBasedTrainLoop)


def _steps(runner: Any) -> dict[str, int]:
    """How much training is complete, in both units."""
    return dict(epoch=runner.epoch, iteration=runner.iter)


def _title_and_length(runner: Any) -> tuple[str, int]:
    """The name of the current epoch and its iterations; without epochs, those of the run."""
    if not _has_epochs(runner):
        return 'iteration', runner.max_iters
    return f'epoch {runner.epoch + 1}/{runner.max_epochs}', len(runner.train_dataloader)


def _loss(runner: Any) -> list[str]:
    """The mean loss of the last iterations, as in MMEngine's log, if a model logs one."""
    scalars = runner.message_hub.log_scalars
    if 'train/loss' not in scalars:
        return []
    return [f'loss {scalars["train/loss"].mean(runner.log_processor.window_size):.3f}']


def _interval(runner: Any) -> int:
    """Iterations between two lines of MMEngine's log."""
    hooks = (hook.interval for hook in runner.hooks if isinstance(hook, LoggerHook))
    return next(hooks, _USUAL_INTERVAL)


def evaluations_left(runner: Any) -> int:
    """How many evaluations are still to come in a loop of MMEngine; 0 for other loops."""
    loop = runner.train_loop
    if runner.val_loop is None or not isinstance(loop, EpochBasedTrainLoop | IterBasedTrainLoop):
        return 0
    by_epoch = _has_epochs(runner)
    last = runner.max_epochs if by_epoch else runner.max_iters
    first = max((runner.epoch if by_epoch else runner.iter) + 1, loop.val_begin)
    count = int(first <= last)  # the last one always comes
    # MMEngine switches to the next interval a step before its milestone.
    starts = [max(milestone - 1, first) for milestone in loop.dynamic_milestones]
    ends = [*starts[1:], last]
    for start, end, interval in zip(starts, ends, loop.dynamic_intervals, strict=True):
        # Multiples of the interval from start to before the end; it may be a float, such as inf.
        count += max(0, int(-(-min(end, last) // interval) + -start // interval))
    return count


def _use_real_streams() -> None:
    """Let a forked worker print without the bar, which belongs to its parent."""
    for name in ('stdout', 'stderr'):
        real = getattr(getattr(sys, name), 'rich_proxied_file', None)
        if real is not None:
            setattr(sys, name, real)


if hasattr(os, 'register_at_fork'):  # not on Windows, where nothing is forked
    os.register_at_fork(after_in_child=_use_real_streams)
