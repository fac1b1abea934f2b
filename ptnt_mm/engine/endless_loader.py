"""An endless stream of batches that can start at any iteration, independent of the workers.

To start late, the stream skips indices, not images: the 150,000th batch comes within a second, or
within seconds if a batch sampler looks up every skipped entry. Each index carries its place in the
stream to the worker that loads it, and augmentation is seeded by that place: neither the number of
workers nor their history matters.
"""

import inspect
from collections.abc import Iterable, Iterator
from itertools import count, islice
from typing import Any, NamedTuple

from mmengine.dist import get_rank
from torch.utils.data import DataLoader, Dataset, IterableDataset

from ptnt_mm.engine.seeding import SAMPLES, seed_cpu
from ptnt_mm.utils.errors import UserError

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
