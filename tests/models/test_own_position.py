"""Encodings that another module adds to POSITIONS."""

import pytest
import torch
from torch import Tensor

from ptnt_mm.models import CPVT, TNT, PyramidTNT
from ptnt_mm.models.position_tables import GridRelativePosition, RelativePosition
from ptnt_mm.models.positions import POSITIONS, LearnedPosition, PositionEncoding
from ptnt_mm.models.tokens import Grid, area

from . import golden

NETWORKS = pytest.mark.parametrize(
    ('network', 'arch'), [(PyramidTNT, 'tiny'), (TNT, 'small'), (CPVT, 'tiny')]
)


class Doubled(LearnedPosition):
    """Twice the learned table."""

    def encode(self, table: Tensor, hw: Grid, like: Tensor) -> Tensor:
        return 2 * super().encode(table, hw, like)


class Even(RelativePosition):
    """The same for each pair of tokens, which a softmax does not see."""

    def between(self, table: None, query_hw: Grid, key_hw: Grid) -> Tensor:
        queries, keys = (self.class_tokens + area(hw) for hw in (query_hw, key_hw))
        return torch.ones(1, 1, queries, keys)


class EvenPosition(PositionEncoding):
    """Only positions between pairs of tokens."""

    relative_position = Even


class EvenGridPosition(PositionEncoding):
    """A pyramid's table of its own."""

    relative_position = type('EvenGrid', (GridRelativePosition,), {})


@NETWORKS
def test_networks_know_an_encoding_that_was_added(
    monkeypatch: pytest.MonkeyPatch, network: type, arch: str
):
    monkeypatch.setitem(POSITIONS, 'doubled', Doubled)
    assert type(network(arch, position='doubled').position) is Doubled
    with pytest.raises(ValueError, match="position 'tripled'.*doubled"):
        network(arch, position='tripled')


@NETWORKS
@torch.inference_mode()
def test_networks_take_positions_between_pairs_of_tokens(
    monkeypatch: pytest.MonkeyPatch, network: type, arch: str
):
    monkeypatch.setitem(POSITIONS, 'even', EvenPosition)
    even, none = (golden.filled(network(arch, position=name)).eval() for name in ('even', 'none'))
    image = golden.image(1, 72, 104)
    torch.testing.assert_close(even(image), none(image))


def test_an_encoding_keeps_its_positions_between_pairs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(POSITIONS, 'even', EvenPosition)
    monkeypatch.setitem(POSITIONS, 'even_grid', EvenGridPosition)
    for name in ('even', 'even_grid'):
        for option in ('flat', 'none'):
            with pytest.raises(ValueError, match=f"'{name}' has other positions between pairs"):
                PyramidTNT('tiny', position=name, relative_position=option)
    with pytest.raises(ValueError, match="unknown position 'even_grid'"):
        CPVT('tiny', position='even_grid')
