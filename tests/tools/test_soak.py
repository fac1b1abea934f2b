"""A part of `make soak`: killed runs continue as if nothing had happened."""

import pytest
from soak import Soak

from .workplace import Workplace


@pytest.mark.timeout(600)
def test_killed_while_a_checkpoint_is_written(workplace: Workplace):
    outcome = Soak(workplace.folder).kill_while_writing('half', 2)
    assert outcome.injected > 0 and outcome.runs_lost == outcome.checkpoints_lost == 0
