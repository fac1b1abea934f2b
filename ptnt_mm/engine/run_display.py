"""Show on the terminal how far a run is, how it does, and how much longer it takes."""

import re
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import torch
from mmengine.dist import get_world_size, is_main_process
from mmengine.hooks import Hook, LoggerHook
from mmengine.logging import MessageHub
from mmengine.runner import EpochBasedTrainLoop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from ptnt_mm.engine.class_scores import ClassScores, Rows
from ptnt_mm.utils.metrics import main_metrics, scored
from ptnt_mm.utils.terminal import say
from ptnt_mm.utils.text import duration, format_bytes

_USUAL_INTERVAL = 10  # iterations


class RunDisplay(Hook):
    """A bar for the epoch, or for a run without epochs, and a line for each evaluation.

    On a terminal, each epoch leaves one line. In a file or a pipe, there are no bars, and a line
    for each interval of MMEngine's ``LoggerHook``. It is a context that removes the bars at the
    end, and shows nothing outside of it, nor in any process but the first.
    """

    def __init__(self):
        self._bars: Progress | None = None
        self._epoch: TaskID | None = None
        self._evaluation: TaskID | None = None
        self._evaluations = _Clock()
        self._begun = self._epoch_begun = 0.0
        self._scores = ClassScores()
        self.classes: Rows = []
        """The scores by class of the best evaluation, or of the last one if none is best."""
        self.summary = ''
        """The best scores and when they were reached, or the last ones if none is best."""
        self.took = 0.0
        """Seconds that the context lasted."""

    def __enter__(self) -> Self:
        self._scores.__enter__()
        self._begun = time.monotonic()
        on_terminal = all(s is not None and s.isatty() for s in (sys.stdout, sys.stderr))
        self._bars = Progress(
            TextColumn('{task.description}'),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn('{task.fields[status]}'),
            console=Console(stderr=True),
            disable=not on_terminal or not is_main_process(),
            transient=True,
        )
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._scores.__exit__(kind, error, traceback)
        self.took = time.monotonic() - self._begun
        self._bars.stop()
        self._bars = None

    def before_train(self, runner: Any) -> None:
        """Say where a resumed run continues."""
        if self._bars and runner.iter and is_main_process():
            by_epoch = isinstance(runner.train_loop, EpochBasedTrainLoop)
            say(f'Continuing after {"epoch" if by_epoch else "iteration"} {_steps(runner)}')

    def before_train_epoch(self, runner: Any) -> None:
        """Begin a bar."""
        self._epoch_begun = time.monotonic()
        if self._bars:
            title, done, total = _position(runner)
            self._epoch = self._bars.add_task(title, completed=done, total=total, status='')

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Move the bar, or print a line in an interval's last iteration."""
        if not self._bars:
            return
        title, done, total = _position(runner, 1)
        if not self._bars.disable:
            self._bars.update(self._epoch, completed=done, status=self._status(runner, data_batch))
        elif is_main_process() and (done % _interval(runner) == 0 or done == total):
            say(f'{title}  {done}/{total}  {self._status(runner, data_batch)}')

    def after_train_epoch(self, runner: Any) -> None:
        """Remove the bar, and leave a line."""
        if not self._bars or self._bars.disable:
            return
        self._bars.remove_task(self._epoch)
        title, *_ = _position(runner)
        took = duration(time.monotonic() - self._epoch_begun)
        say(f'{title}  {_loss(runner.message_hub, 50)}  {took}')

    def before_val_epoch(self, runner: Any) -> None:
        """Begin the bar of an evaluation."""
        self._evaluations.start()
        self._begin_evaluation(runner.val_loop)

    def before_test_epoch(self, runner: Any) -> None:
        """Begin the bar of a test."""
        self._begin_evaluation(runner.test_loop)

    def after_val_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        """Move the bar of an evaluation."""
        if self._bars:
            self._bars.update(self._evaluation, completed=batch_idx + 1)

    def after_test_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        """Move the bar of a test."""
        if self._bars:
            self._bars.update(self._evaluation, completed=batch_idx + 1)

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        """Remove the bar of an evaluation, and leave a line with its main scores and the best."""
        self._evaluations.stop()
        if not self._bars:
            return
        self._bars.remove_task(self._evaluation)
        if not metrics or not is_main_process():
            return
        scores = [scored(key, metrics[key]) for key in main_metrics(metrics)]
        best = best_scores(runner.message_hub, metrics)
        if any(step == _steps(runner) for _, _, step in best) or not best or not self.classes:
            self.classes = self._scores.rows
        bests = [f'best {score} ({unit} {step})' for score, unit, step in best]
        self.summary = '  '.join(bests or scores)
        say('  '.join(('  evaluation', *scores, *bests)))

    def after_test_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        """Remove the bar of a test."""
        if self._bars:
            self._bars.remove_task(self._evaluation)
            self.classes = self._scores.rows

    def _begin_evaluation(self, loop: Any) -> None:
        self._scores.begin(loop.evaluator)
        if self._bars:
            images = len(loop.dataloader)
            self._evaluation = self._bars.add_task('  evaluation', total=images, status='')

    def _status(self, runner: Any, batch: Any) -> str:
        """Loss, speed, memory and remaining time: 'loss 0.421  5.7 images/s  12 min left'."""
        hub = runner.message_hub
        seconds = hub.get_scalar('train/time').mean(_USUAL_INTERVAL)
        parts = [_loss(hub, _USUAL_INTERVAL)]
        with suppress(TypeError, KeyError):  # a batch without the usual inputs
            images = len(batch['inputs']) * get_world_size()
            parts.append(f'{images / seconds:.1f} images/s')
        if torch.cuda.is_available():
            parts.append(format_bytes(torch.cuda.max_memory_allocated()))
        left = hub.get_info('eta') + self._evaluations.mean * _evaluations_left(runner)
        return '  '.join((*parts, f'{duration(left)} left'))


class _Clock:
    """The mean duration of what is repeated, in seconds; 0 before the first end."""

    def __init__(self):
        self._begun, self._sum, self._count = 0.0, 0.0, 0

    def start(self) -> None:
        self._begun = time.monotonic()

    def stop(self) -> None:
        self._sum += time.monotonic() - self._begun
        self._count += 1

    @property
    def mean(self) -> float:
        return self._sum / max(self._count, 1)


def best_scores(hub: MessageHub, metrics: Mapping[str, float]) -> list[tuple[str, str, int]]:
    """The best scores for which MMEngine keeps checkpoints: ('AP 0.448', 'epoch', 3).

    Args:
        hub: Where MMEngine's ``CheckpointHook`` notes them.
        metrics: The last evaluation.
    """
    infos, found = hub.runtime_info, []
    for key in metrics:
        for suffix in ('', f'_{key}'):
            score, file = infos.get(f'best_score{suffix}'), infos.get(f'best_ckpt{suffix}')
            name = re.escape(f'best_{key.replace("/", "_")}')
            when = re.search(rf'{name}_(epoch|iter)_(\d+)', str(file))
            if score is not None and when:
                unit = 'epoch' if when[1] == 'epoch' else 'iteration'
                found.append((scored(key, score), unit, int(when[2])))
    return found


def _steps(runner: Any) -> int:
    """Completed epochs, or iterations of a run without epochs, as an evaluation counts them."""
    by_epoch = isinstance(runner.train_loop, EpochBasedTrainLoop)
    return runner.epoch if by_epoch else runner.iter


def _position(runner: Any, offset: int = 0) -> tuple[str, int, int]:
    """A title, and how many iterations of an epoch, or of a run without epochs, are complete.

    Args:
        runner: The runner.
        offset: 1 while an iteration ends: MMEngine counts it later.
    """
    done = runner.iter + offset
    if not isinstance(runner.train_loop, EpochBasedTrainLoop):
        return 'iteration', done, runner.max_iters
    length = len(runner.train_dataloader)
    epoch = min(runner.epoch + 1, runner.max_epochs)
    return f'epoch {epoch}/{runner.max_epochs}', done - (epoch - 1) * length, length


def _loss(hub: MessageHub, window: int) -> str:
    return f'loss {hub.get_scalar("train/loss").mean(window):.3f}'


def _interval(runner: Any) -> int:
    """Iterations between two lines of MMEngine's log."""
    hooks = (hook.interval for hook in runner.hooks if isinstance(hook, LoggerHook))
    return next(hooks, _USUAL_INTERVAL)


def _evaluations_left(runner: Any) -> int:
    loop = runner.train_loop
    if runner.val_loop is None:
        return 0
    last = runner.max_epochs if isinstance(loop, EpochBasedTrainLoop) else runner.max_iters
    done = _steps(runner)
    # The last one always comes; those before it, at the interval.
    return -(-last // loop.val_interval) - done // loop.val_interval
