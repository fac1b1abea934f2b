"""Shared by the tests of weights."""

from collections.abc import Iterator

import pytest
from mmengine.registry import DefaultScope


@pytest.fixture(autouse=True)
def _no_host() -> Iterator[None]:
    """Names are those of MMEngine, whatever earlier tests loaded: mmpretrain has a TNT too."""
    with DefaultScope.overwrite_default_scope('mmengine'):
        yield
