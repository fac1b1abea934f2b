"""Random numbers that depend only on the seed and the progress of a run."""

import sys
from functools import partial
from types import TracebackType
from typing import Any

import torch
from mmengine.dist import get_rank
from mmengine.hooks import Hook

from ptnt_mm.engine.seeding import EPOCHS, ITERATIONS, seed_all
from ptnt_mm.registry import HOOKS


@HOOKS.register_module()
class RepeatableHook(Hook):
    """Draw all random numbers of an epoch from (seed, epoch) and of an iteration from (seed, iter).

    So resuming a stopped run gives the same results as not stopping it: MMEngine leaves generators
    in the state after process start, and its workers either persist from epoch to epoch or start
    each with the same numbers. Here, workers are restarted for every epoch.

    In iteration-based training, :class:`RepeatableIterBasedTrainLoop` seeds the data.
    """

    # The data loader starts its workers right after `before_train_epoch`.
    priority = 'LOWEST'

    def before_train(self, runner: Any) -> None:
        """Seed workers from the epoch's numbers."""
        loader = runner.train_dataloader
        loader.worker_init_fn = partial(_start_worker, loader.worker_init_fn)

    def before_train_epoch(self, runner: Any) -> None:
        """Seed the data of the epoch."""
        # Ends the workers that `persistent_workers` kept from the epoch before.
        runner.train_dataloader._iterator = None
        seed_all(runner.seed, get_rank(), EPOCHS, runner.epoch)

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        """Seed the random choices of the model: dropped paths, sampled anchors."""
        seed_all(runner.seed, get_rank(), ITERATIONS, runner.iter)

    def after_train(self, runner: Any) -> None:
        """End the last workers: at process exit, each would take five seconds."""
        runner.train_dataloader._iterator = None


def _start_worker(mmengines: Any, worker: int) -> None:
    """Initialise a worker, which torch has already seeded from the main process."""
    seed = torch.initial_seed()
    if mmengines is not None:
        mmengines(worker)
    seed_all(seed)
    sys.excepthook = _report


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a worker's error, except a connection that Ctrl-C in the main process closed."""
    if not issubclass(kind, (ConnectionError, EOFError)):
        sys.__excepthook__(kind, error, trace)
