"""Be one of several processes of a distributed run, in a single process."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import distributed
from torch.testing._internal.distributed.fake_pg import FakeStore


@contextmanager
def second_of_two() -> Iterator[None]:
    """Be the second of two processes, whose messages go nowhere."""
    distributed.init_process_group('fake', rank=1, world_size=2, store=FakeStore())
    try:
        yield
    finally:
        distributed.destroy_process_group()
