"""Batches from any iteration on, which are the same whoever loads them."""

import multiprocessing
import time
from itertools import islice

import pytest
import torch
from mmengine.dataset import DefaultSampler, InfiniteSampler, pseudo_collate
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset

from ptnt_mm.engine.endless import BatchStream, EndlessLoader
from ptnt_mm.errors import UserError

from .toy import ToyDataset, ToyNoise


class Counted(ToyDataset):
    """Ten rows with random numbers; knows how many were loaded."""

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


def test_seeds_and_processes_have_numbers_of_their_own(monkeypatch):
    one, other = endless(), endless()
    other.begin(seed=8, iteration=0)
    monkeypatch.setattr('ptnt_mm.engine.endless.get_rank', lambda: 1)
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


def test_what_is_skipped_is_not_loaded():
    Counted.loaded = 0
    start = time.monotonic()
    next(iter(endless(begin=150_000)))
    assert Counted.loaded == 4
    # About half a second; loading would take minutes even for these rows.
    assert time.monotonic() - start < 20


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


def test_what_hooks_look_for_is_there():
    loader = endless()
    assert loader.dataset.metainfo == {} and loader.dataset.pipeline.transforms
    assert isinstance(loader.batch_sampler.sampler, InfiniteSampler)
    assert len(loader.dataset) == 10 and len(loader) == 3
    with pytest.raises(AttributeError, match='no_such'):
        _ = loader.dataset.no_such


def test_a_pass_is_shorter_where_processes_share_it(monkeypatch):
    monkeypatch.setattr('ptnt_mm.engine.endless.get_world_size', lambda: 2)
    assert len(endless()) == 2


def test_no_data():
    class Empty(Dataset):
        def __len__(self):
            return 0

    empty = DataLoader(Empty(), sampler=InfiniteSampler(Empty()), batch_size=2)
    with pytest.raises(UserError, match='the training data set is empty: look at data_root'):
        EndlessLoader(empty)


def test_less_data_than_a_batch():
    loader = endless(sampler=DefaultSampler, batch_size=20, drop_last=True)
    with pytest.raises(UserError, match='does not fill a batch: lower .*batch_size'):
        next(iter(loader))


def test_data_without_batches_of_indices():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    for data, size in ((Stream(), None), (Stream(), 2), (range(3), None)):
        with pytest.raises(UserError, match='needs a data set with indices'):
            EndlessLoader(DataLoader(data, batch_size=size))
