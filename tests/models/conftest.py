"""Models small enough to be built hundreds of times."""

from collections.abc import Callable, Iterator

import pytest
import torch

from ptnt_mm.models import PyramidTNT

from .golden import filled


@pytest.fixture
def build_micro(micro_arch: dict) -> Callable[..., PyramidTNT]:
    """A function that builds a backbone of ``micro_arch`` with golden weights."""

    def build(**options) -> PyramidTNT:
        return filled(PyramidTNT(micro_arch, **options))

    return build


@pytest.fixture(autouse=True)
def _repeatable() -> Iterator[None]:
    """Fixed seed and one thread: on models this small, threads mostly wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)
