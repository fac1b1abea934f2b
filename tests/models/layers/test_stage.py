import pytest
import torch
from torch import Tensor

from ptnt_mm.models.layers.attention import EagerOuterAttention, FusedOuterAttention
from ptnt_mm.models.layers.block import BlockOptions, NestedBlock
from ptnt_mm.models.layers.relative_position import (
    FlatRelativePosition,
    GridRelativePosition,
    RelativePosition,
)
from ptnt_mm.models.layers.stage import Stage

from .. import golden

ATTENTIONS = [EagerOuterAttention, FusedOuterAttention]


def fresh(
    attention: type = FusedOuterAttention,
    position: type = GridRelativePosition,
    with_cp: bool = False,
    drop: float = 0.0,
    pretrain_hw: tuple[int, int] = (8, 8),
) -> Stage:
    """Three blocks, of which the first has an inner transformer."""
    return Stage(
        inner_dim=4,
        outer_dim=16,
        inner_heads=2,
        outer_heads=4,
        inner_depth=1,
        sr_ratio=2,
        drop_paths=[0.0, drop, drop],
        pretrain_hw=pretrain_hw,
        relative_position=position,
        pegs={},
        options=BlockOptions(attention, 4, False, drop, drop),
        with_cp=with_cp,
    )


def build(*args, **options) -> Stage:
    return golden.filled(fresh(*args, **options))


def tokens(hw: tuple[int, int]) -> tuple[Tensor, Tensor]:
    n = hw[0] * hw[1]
    return torch.randn(2 * n, 16, 4), torch.randn(2, n, 16)


def saved_bytes(stage: Stage, inner: Tensor, outer: Tensor, hw: tuple[int, int]) -> int:
    """Bytes that the forward pass saves for the backward pass, each storage counted once.

    The tokens between recomputed blocks are kept too, but not saved by an operation.
    """
    storages = {}

    def pack(tensor: Tensor) -> Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        stage(inner, outer, hw)
    return sum(storage.nbytes() for storage in storages.values())


def test_the_first_blocks_are_nested():
    assert [isinstance(block, NestedBlock) for block in build().blocks] == [True, False, False]


@pytest.mark.parametrize('attention', ATTENTIONS)
def test_without_a_position_there_is_no_table(attention):
    stage = build(attention, position=RelativePosition)
    assert not [name for name, _ in stage.named_parameters() if 'pos' in name]
    inner, outer = tokens((3, 5))
    assert stage(inner, outer, (3, 5))[1].shape == outer.shape


@pytest.mark.parametrize('hw', [(8, 8), (3, 5), (4, 16)])
def test_the_position_matters_and_each_class_in_its_way(hw):
    inner, outer = tokens(hw)
    grid, flat, none = (
        build(position=position)(inner, outer, hw)[1]
        for position in (GridRelativePosition, FlatRelativePosition, RelativePosition)
    )
    assert not torch.allclose(grid, none, atol=1e-3)
    assert torch.allclose(grid, flat, atol=1e-5) == (hw == (8, 8))


@pytest.mark.parametrize('attention', ATTENTIONS)
def test_recomputing_keeps_less(attention):
    sample = tokens((8, 8))
    plain = saved_bytes(build(attention), *sample, (8, 8))
    assert saved_bytes(build(attention, with_cp=True), *sample, (8, 8)) < 0.1 * plain
