"""An encoding that another module adds to POSITIONS."""

import pytest
from torch import Tensor

from ptnt_mm.models import CPVT, TNT, PyramidTNT
from ptnt_mm.models.positions import POSITIONS, LearnedPosition


class Doubled(LearnedPosition):
    """Twice the learned table."""

    def encode(self, table: Tensor, hw: tuple[int, int], like: Tensor) -> Tensor:
        return 2 * super().encode(table, hw, like)


@pytest.mark.parametrize(
    ('network', 'arch'), [(PyramidTNT, 'tiny'), (TNT, 'small'), (CPVT, 'tiny')]
)
def test_networks_know_an_encoding_that_was_added(
    monkeypatch: pytest.MonkeyPatch, network: type, arch: str
):
    monkeypatch.setitem(POSITIONS, 'doubled', Doubled)
    assert type(network(arch, position='doubled').position) is Doubled
    with pytest.raises(ValueError, match="position 'tripled'.*doubled"):
        network(arch, position='tripled')
