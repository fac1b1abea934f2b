"""The checkpoint that several test files share."""

from pathlib import Path

import pytest

from .samples import write_checkpoint


@pytest.fixture(scope='session')
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp('checkpoint') / 'epoch_1.pth')
