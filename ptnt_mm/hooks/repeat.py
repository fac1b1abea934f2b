"""Repeatable random numbers: a resumed run draws the same ones as a run that never stopped.

Every random number comes from the seed and the progress of the run: of an epoch, an iteration or a
sample. Iteration-based training has an endless stream of batches, which can start at any iteration.
To start late, the stream skips indices, not images: the 150,000th batch comes within a second, or
within seconds if a batch sampler looks up every skipped entry. Each index carries its place in the
stream to the worker that loads it, and augmentation is seeded by that place: neither the number of
workers nor their history matters.
"""

import inspect
import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import count, islice
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import torch
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.runner import IterBasedTrainLoop
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

from ptnt_mm.registry import HOOKS, LOOPS
from ptnt_mm.utils.errors import UserError

EPOCHS, ITERATIONS, SAMPLES = range(3)
"""Purposes of random numbers: the data of an epoch, the model in an iteration, one sample.

They are part of the key, so that epoch 3 and iteration 3 draw different numbers.
"""


def seed_all(*numbers: int) -> None:
    """Seed every generator of this process with a key that identifies these numbers."""
    torch.manual_seed(seed_cpu(*numbers))


def seed_cpu(*numbers: int) -> int:
    """Seed the CPU generators only; return the seed for those of accelerators."""
    words = np.random.SeedSequence(numbers).generate_state(4)
    random.seed(int(words[0]))
    np.random.seed(words[1])
    seed = int(words[2]) << 32 | int(words[3])
    torch.default_generator.manual_seed(seed)
    return seed


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


# Arguments of a data loader, besides its data set and its batches. Workers live as long as the
# stream: persistent_workers, which keeps them from one pass to the next, has no effect.
_LOADING = inspect.signature(DataLoader).parameters.keys() - {
    *('dataset', 'batch_sampler', 'batch_size', 'sampler', 'shuffle', 'drop_last'),
    'persistent_workers',
}


class Place(NamedTuple):
    """An index into a data set, and its place in the stream.

    Attributes:
        index: Index of a sample.
        batch: The iteration that it is for, from 0.
        position: Position in that batch, from 0.
    """

    index: int
    batch: int
    position: int


class SeededDataset(Dataset):
    """A data set that is indexed by places, each with separate random numbers.

    Other attributes are read from and set on the wrapped data set.

    Args:
        dataset: The data set that loads and augments.

    Attributes:
        seeds: The seed of the run, and the rank of this process.
    """

    _OWN = ('dataset', 'seeds')

    def __init__(self, dataset: Any):
        self.dataset = dataset
        self.seeds: tuple[int, ...] = ()

    def __getitem__(self, place: Place) -> Any:
        """Return the sample at a place; it depends only on the seeds and the place."""
        # Samples are made on the CPU: `torch.manual_seed` formats a stack trace for each kind of
        # accelerator, which takes longer than many transforms.
        seed_cpu(*self.seeds, SAMPLES, place.batch, place.position)
        return self.dataset[place.index]

    def __len__(self) -> int:
        """Samples in a pass through the data."""
        return len(self.dataset)

    def __getattr__(self, name: str) -> Any:
        # Protocols of Python and torch, such as __getitems__, would bypass the seeds.
        if name.startswith('__'):
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # Hooks switch pipelines by setting them.
        if name in self._OWN:
            super().__setattr__(name, value)
        else:
            setattr(self.dataset, name, value)


class BatchStream:
    """Yields the batches of places of one process, in endless passes through the data.

    Args:
        batch_sampler: Yields lists of indices. When it ends, it is iterated again, as a new epoch.
        length: The number of batches reported to MMEngine.
    """

    def __init__(self, batch_sampler: Iterable[list[int]], length: int):
        self.batch_sampler = batch_sampler
        # Hooks expect it here.
        self.sampler = getattr(batch_sampler, 'sampler', None)
        self.length = length
        self.start = 0

    def __iter__(self) -> Iterator[list[Place]]:
        for number, batch in islice(enumerate(self._batches()), self.start, None):
            yield [Place(index, number, position) for position, index in enumerate(batch)]

    def __len__(self) -> int:
        return self.length

    def _batches(self) -> Iterator[list[int]]:
        for number in count():
            if hasattr(self.sampler, 'set_epoch'):
                self.sampler.set_epoch(number)
            batch = None
            for batch in self.batch_sampler:
                yield batch
            if batch is None:
                raise UserError(
                    'the training data does not fill a batch: lower train_dataloader.batch_size, '
                    'or omit drop_last'
                )


class EndlessLoader(DataLoader):
    """A data loader that yields endless batches, starting at any iteration.

    Its length is that of the original loader, which schedules use as an epoch: with an
    InfiniteSampler, the batches in a pass of a single process. Workers are started when the first
    batch is requested, and end with the iterator.

    Args:
        loader: The original data loader, which gives all other settings.

    Raises:
        UserError: if there is no data, or if batches are not made of indices.
    """

    def __init__(self, loader: DataLoader):
        if loader.batch_sampler is None or isinstance(loader.dataset, IterableDataset):
            raise UserError(
                'iteration-based training needs a data set that can be indexed, and a sampler: set '
                'train_dataloader.sampler and train_dataloader.batch_size'
            )
        if len(loader.dataset) == 0:
            raise UserError(
                'the training data set is empty: check data_root, data_prefix, ann_file and the '
                'suffixes in train_dataloader.dataset'
            )
        try:
            # Some batch samplers loop through the data to count.
            length = len(loader)
        except TypeError as error:
            name = type(loader.batch_sampler).__name__
            raise UserError(
                f'train_dataloader.batch_sampler: {name} has no length, which schedules and logs '
                'need: add a __len__'
            ) from error
        super().__init__(
            SeededDataset(loader.dataset),
            batch_sampler=BatchStream(loader.batch_sampler, length),
            **{name: getattr(loader, name) for name in _LOADING},
        )

    def begin(self, seed: int, iteration: int) -> None:
        """Set the seed of all samples, and the iteration of the next batch."""
        self.dataset.seeds = (seed, get_rank())
        self.batch_sampler.start = iteration

    def __iter__(self) -> Iterator[Any]:
        # A generator, so that nothing starts before the first batch is requested.
        yield from super().__iter__()


@LOOPS.register_module()
class RepeatableIterBasedTrainLoop(IterBasedTrainLoop):
    """MMEngine's loop, but a resumed run continues at once, as if it had never stopped.

    MMEngine's loop loads and augments all images again that were used before the stop, and the
    random numbers of its workers depend on their number and history. It also starts them before
    any hook is called. This loop takes the same arguments.
    """

    def __init__(
        self,
        runner: Any,
        dataloader: DataLoader | dict,
        max_iters: int,
        val_begin: int = 1,
        val_interval: int = 1000,
        dynamic_intervals: list[tuple[int, int]] | None = None,
    ):
        if isinstance(dataloader, dict):
            differ = runner._randomness_cfg.get('diff_rank_seed', False)
            dataloader = runner.build_dataloader(dataloader, runner.seed, differ)
        loader = EndlessLoader(dataloader)
        super().__init__(runner, loader, max_iters, val_begin, val_interval, dynamic_intervals)

    def run(self) -> nn.Module:
        """Train from the resumed iteration, or from the first; return the model."""
        self.runner.call_hook('before_train')
        # For hooks, the whole run is one epoch.
        self.runner.call_hook('before_train_epoch')
        self.dataloader.begin(self.runner.seed, self.iter)
        with closing(iter(self.dataloader)) as self.dataloader_iterator:
            while self.iter < self.max_iters and not self.stop_training:
                self.runner.model.train()
                self.run_iter(next(self.dataloader_iterator))
                self._decide_current_val_interval()
                due = self.iter % self.val_interval == 0 or self.iter == self.max_iters
                if self.runner.val_loop is not None and self.iter >= self.val_begin and due:
                    self.runner.val_loop.run()
        self.runner.call_hook('after_train_epoch')
        self.runner.call_hook('after_train')
        return self.runner.model
