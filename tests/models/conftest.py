"""Models small enough to be built hundreds of times."""

from collections.abc import Callable, Iterator

import pytest
import torch

from ptnt_mm.models import PyramidTNT

from .golden import filled


@pytest.fixture
def micro_arch() -> dict:
    """An arch with everything that the published ones have, at a thousandth of the cost."""
    return dict(
        depths=(1, 2, 1, 1),
        inner_depths=(1, 2, 1, 1),
        outer_dims=(8, 16, 16, 8),
        inner_dims=(2, 4, 4, 2),
        outer_heads=(2, 4, 4, 2),
        inner_heads=(1, 2, 2, 1),
        pretrain_img_size=128,
    )


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
