"""Random numbers that depend on where a training is, not on how it got there."""

import sys
from functools import partial
from types import TracebackType
from typing import Any

import torch
from mmengine.dist import get_rank
from mmengine.hooks import Hook

from ptnt_mm.engine.endless_loader import seed_all
from ptnt_mm.registry import HOOKS


@HOOKS.register_module()
class RepeatableHook(Hook):
    """Draw all random numbers of an epoch from (seed, epoch) and of an iteration from (seed, iter).

    So a training that was stopped and resumed does what it would have done otherwise: MMEngine
    leaves generators as the process start left them, and its workers either live on from epoch to
    epoch or start each with the same numbers. Workers are started anew for every epoch here.

    In iteration-based training the data is up to :class:`RepeatableIterBasedTrainLoop`.
    """

    # The data loader starts its workers right after `before_train_epoch`.
    priority = 'LOWEST'

    def before_train(self, runner: Any) -> None:
        """Let workers take their numbers from the epoch's."""
        loader = runner.train_dataloader
        loader.worker_init_fn = partial(_start_worker, loader.worker_init_fn)

    def before_train_epoch(self, runner: Any) -> None:
        """Seed what the epoch's data comes from."""
        # Ends the workers that `persistent_workers` kept from the epoch before.
        runner.train_dataloader._iterator = None
        seed_all(runner.seed, get_rank(), 0, runner.epoch)

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        """Seed what the model draws: dropped paths, sampled anchors."""
        seed_all(runner.seed, get_rank(), 1, runner.iter)

    def after_train(self, runner: Any) -> None:
        """End the last workers here: when a process ends, each takes five seconds."""
        runner.train_dataloader._iterator = None


def _start_worker(mmengines: Any, worker: int) -> None:
    """What a worker does when it starts; torch has seeded it from the main process by then."""
    seed = torch.initial_seed()
    if mmengines is not None:
        mmengines(worker)
    seed_all(seed)
    sys.excepthook = _report


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a worker's error, but not that the main process, stopped by Ctrl-C, hung up on it."""
    if not issubclass(kind, (ConnectionError, EOFError)):
        sys.__excepthook__(kind, error, trace)
