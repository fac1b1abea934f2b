"""A part of `make soak`: killed runs continue as if nothing had happened."""

import pytest
from soak import Outcome, Soak

from .workplace import Workplace


@pytest.fixture(scope='module')
def soak(workplace: Workplace) -> Soak:
    return Soak(workplace.folder)


def is_clean(outcome: Outcome) -> bool:
    return outcome.injected > 0 and outcome.runs_lost == outcome.checkpoints_lost == 0


@pytest.mark.timeout(600)
def test_killed_while_a_checkpoint_is_written(soak: Soak):
    assert is_clean(soak.kill_while_writing('half', 2))


@pytest.mark.timeout(600)
def test_a_full_disk(soak: Soak):
    try:
        outcome = soak.fill_the_disk()
    except PermissionError as error:
        pytest.skip(f'no separate file system can be mounted here: {error}')
    assert is_clean(outcome)
