"""Batches from any iteration on, independent of the workers that load them."""

import multiprocessing
import time
from itertools import islice

import pytest
import torch
from mmengine.dataset import Compose, DefaultSampler, InfiniteSampler, pseudo_collate
from ranks import second_of_two
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, Sampler
from toy import ToyDataset, ToyNoise

from ptnt_mm.hooks.repeat import BatchStream, EndlessLoader
from ptnt_mm.utils.errors import UserError

pytestmark = pytest.mark.slow


class Counted(ToyDataset):
    """Ten rows with random numbers; counts how many were loaded."""

    loaded = 0

    def __getitem__(self, index: int) -> dict:
        Counted.loaded += 1
        return super().__getitem__(index)


def endless(
    workers: int = 0, sampler: type = InfiniteSampler, begin: int = 0, **settings
) -> EndlessLoader:
    data = Counted(pipeline=[ToyNoise()])
    settings = dict(batch_size=4, num_workers=workers, collate_fn=pseudo_collate) | settings
    loader = EndlessLoader(DataLoader(data, sampler=sampler(data, seed=5), **settings))
    loader.begin(seed=7, iteration=begin)
    return loader


def batches(number: int, *args, **kwargs) -> Tensor:
    """The features of some batches: (number, 4, 4); the first one is a tenth of the index."""
    found = [torch.stack(batch['inputs']) for batch in islice(endless(*args, **kwargs), number)]
    return torch.stack(found)


@pytest.mark.parametrize('workers', [1, 2])
def test_the_number_of_workers_changes_nothing(workers: int):
    assert torch.equal(batches(9, workers), batches(9))


@pytest.mark.parametrize('workers', [0, 2])
@pytest.mark.parametrize('begin', [1, 2, 5, 8])
def test_batches_are_the_same_wherever_one_begins(begin: int, workers: int):
    whole = batches(12)
    assert torch.equal(batches(12 - begin, workers, begin=begin), whole[begin:])


def test_no_two_samples_have_the_same_numbers():
    noise = batches(9)[..., 1:].flatten()
    assert len(noise.unique()) == len(noise)


def test_seeds_and_processes_have_numbers_of_their_own():
    one, other = endless(), endless()
    other.begin(seed=8, iteration=0)
    with second_of_two():
        second = endless()
    first = [torch.stack(next(iter(loader))['inputs']) for loader in (one, other, second)]
    assert len(torch.stack(first)[..., 1:].unique()) == 3 * 4 * 3


def test_the_order_is_mmengines(monkeypatch):
    """In each of two processes, from any batch on; a pass has all of the data."""
    data, seen = Counted(), []
    for rank in range(2):
        monkeypatch.setattr('mmengine.dataset.sampler.get_dist_info', lambda rank=rank: (rank, 2))
        theirs = list(islice(BatchSampler(InfiniteSampler(data, seed=5), 2, False), 50))
        stream = BatchStream(BatchSampler(InfiniteSampler(data, seed=5), 2, False), length=3)
        stream.start = 20
        ours = list(islice(stream, 30))
        assert [[place.index for place in batch] for batch in ours] == theirs[20:]
        assert [batch[1].batch for batch in ours] == list(range(20, 50))
        seen += [index for batch in theirs[:2] for index in batch]
    assert sorted(seen) == sorted(set(seen))


def test_a_sampler_that_ends_begins_again_in_another_order():
    features = batches(6, sampler=DefaultSampler, drop_last=True, batch_size=5)
    passes = (features[..., 0] * 10).round().int().reshape(3, 10)
    assert all(sorted(one.tolist()) == list(range(10)) for one in passes)
    assert not torch.equal(passes[0], passes[1]) and not torch.equal(passes[1], passes[2])
    later = batches(3, sampler=DefaultSampler, drop_last=True, batch_size=5, begin=3)
    assert torch.equal(later, features[3:])


def test_workers_start_with_the_first_batch_and_end_with_the_iterator():
    loader = endless(workers=2, persistent_workers=True)
    iterator = iter(loader)
    before = set(multiprocessing.active_children())
    next(iterator)
    started = set(multiprocessing.active_children()) - before
    assert len(started) == 2
    iterator.close()
    assert not started & set(multiprocessing.active_children())


def test_workers_that_are_spawned_draw_the_same():
    spawned = batches(2, 1, multiprocessing_context='spawn')
    assert torch.equal(spawned, batches(2))


def test_loader_has_the_attributes_that_hooks_read():
    loader = endless()
    assert loader.dataset.metainfo == {} and loader.dataset.pipeline.transforms
    assert isinstance(loader.batch_sampler.sampler, InfiniteSampler)
    assert len(loader.dataset) == 10 and len(loader) == 3
    with pytest.raises(AttributeError, match='no_such'):
        _ = loader.dataset.no_such


def test_attributes_set_by_hooks_reach_the_wrapped_data_set():
    loader = endless()
    inside = loader.dataset.dataset
    loader.dataset.pipeline = switched = Compose([])
    assert inside.pipeline is switched
    # The wrapper's own.
    loader.begin(seed=9, iteration=0)
    assert loader.dataset.seeds == (9, 0) and not hasattr(inside, 'seeds')


@pytest.mark.parametrize(('sampler', 'length'), [(InfiniteSampler, 3), (DefaultSampler, 2)])
def test_in_two_processes_the_length_is_mmengines(sampler: type, length: int):
    """Ten rows: MMEngine's InfiniteSampler counts all of them, in three batches."""
    data = Counted(pipeline=[ToyNoise()])
    with second_of_two():
        theirs = DataLoader(data, sampler=sampler(data, seed=5), batch_size=4)
        assert len(EndlessLoader(theirs)) == len(theirs) == length


class Shaped(Counted):
    """Rows with image sizes, every third one portrait."""

    def load_data_list(self) -> list[dict]:
        return [dict(width=9 - 3 * (i % 3), height=5) for i in range(10)]


def grouped(shape: str, size: int = 2) -> DataLoader:
    """A loader with one of mmdet's batch samplers; a second data set has batches of four."""
    from mmdet.datasets import ConcatDataset, samplers

    if shape == 'aspect ratio':
        data = Shaped(pipeline=[ToyNoise()])
        batches = samplers.AspectRatioBatchSampler(InfiniteSampler(data, seed=5), size)
    else:
        data = ConcatDataset([Shaped(pipeline=[ToyNoise()]) for _ in range(2)])
        sampler = samplers.MultiDataSampler(data, dataset_ratio=[1, 1], seed=5)
        batches = samplers.MultiDataAspectRatioBatchSampler(sampler, [size, 4], num_datasets=2)
    return DataLoader(data, batch_sampler=batches, collate_fn=pseudo_collate)


@pytest.mark.parametrize('sampler', ['plain', 'aspect ratio'])
def test_what_is_skipped_is_not_loaded(sampler: str):
    """Batches of four; mmdet's sampler looks up the shape of every image that it skips."""
    loader = endless() if sampler == 'plain' else EndlessLoader(grouped(sampler, size=4))
    loader.begin(seed=7, iteration=150_000)
    Counted.loaded = 0
    start = time.process_time()  # machines are busy
    next(iter(loader))
    assert Counted.loaded == 4
    # Seconds at most; loading would take minutes even for these rows.
    assert time.process_time() - start < 20


@pytest.mark.parametrize('shape', ['aspect ratio', 'several data sets'])
def test_mmdets_batch_samplers(shape: str):
    """Order and length are unchanged, and each batch is the same from any starting point."""

    def found(begin: int, number: int) -> list[Tensor]:
        loader = EndlessLoader(grouped(shape))
        loader.begin(seed=7, iteration=begin)
        return [torch.stack(batch['inputs']) for batch in islice(loader, number)]

    theirs, length = grouped(shape), len(grouped(shape))
    assert len(EndlessLoader(theirs)) == length > 3
    whole = found(0, 3 * length)
    for batch, expected in zip(whole, islice(theirs, 3), strict=False):
        assert torch.equal(batch[:, 0], torch.stack(expected['inputs'])[:, 0])
    for batch, expected in zip(found(length, 2 * length), whole[length:], strict=True):
        assert torch.equal(batch, expected)
    sizes = {len(batch) for batch in whole}
    assert sizes == ({2} if shape == 'aspect ratio' else {2, 4})


class Pairs(Sampler):
    """A custom batch sampler without batch_size and sampler."""

    def __iter__(self):
        yield from ([i, i + 1] for i in range(0, 10, 2))


class CountedPairs(Pairs):
    def __len__(self) -> int:
        return 5


def test_a_batch_sampler_of_ones_own():
    data = Counted(pipeline=[ToyNoise()])
    loader = EndlessLoader(
        DataLoader(data, batch_sampler=CountedPairs(), collate_fn=pseudo_collate)
    )
    rows = [torch.stack(batch['inputs'])[:, 0] * 10 for batch in islice(loader, 7)]
    assert torch.stack(rows).round().int().tolist() == [*CountedPairs(), [0, 1], [2, 3]]
    assert len(loader) == 5


def test_batch_sampler_without_a_length_is_refused():
    data = Counted(pipeline=[ToyNoise()])
    with pytest.raises(UserError, match='batch_sampler: Pairs has no length.*add a __len__'):
        EndlessLoader(DataLoader(data, batch_sampler=Pairs()))


def test_empty_data_set_is_refused():
    class Empty(Dataset):
        def __len__(self):
            return 0

    empty = DataLoader(Empty(), sampler=InfiniteSampler(Empty()), batch_size=2)
    with pytest.raises(UserError, match='the training data set is empty: check data_root'):
        EndlessLoader(empty)


def test_data_set_smaller_than_a_batch_is_refused():
    loader = endless(sampler=DefaultSampler, batch_size=20, drop_last=True)
    with pytest.raises(UserError, match='does not fill a batch: lower .*batch_size'):
        next(iter(loader))


def test_iterable_data_set_is_refused():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    for data, size in ((Stream(), None), (Stream(), 2), (range(3), None)):
        with pytest.raises(UserError, match='train_dataloader.sampler'):
            EndlessLoader(DataLoader(data, batch_size=size))
