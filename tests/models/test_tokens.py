import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.tokens import (
    crop,
    map_to_tokens,
    map_to_words,
    tokens_to_contiguous_map,
    tokens_to_map,
    words_to_map,
    words_to_quads,
)

BATCH, H, W, C = 2, 4, 6, 3


def counted(*shape: int) -> torch.Tensor:
    """A tensor with distinct entries."""
    return torch.arange(torch.Size(shape).numel()).reshape(shape)


def test_tokens_are_counted_row_by_row():
    tokens = counted(BATCH, H * W, C)
    feature = tokens_to_map(tokens, (H, W))
    assert feature.shape == (BATCH, C, H, W)
    for y, x in itertools.product(range(H), range(W)):
        assert torch.equal(feature[:, :, y, x], tokens[:, y * W + x])


def test_a_contiguous_map_holds_the_same():
    tokens = counted(BATCH, H * W, C)
    feature = tokens_to_contiguous_map(tokens, (H, W))
    assert torch.equal(feature, tokens_to_map(tokens, (H, W)))
    assert feature.is_contiguous()


def test_gradients_of_a_contiguous_map_are_in_the_order_of_tokens():
    tokens = counted(BATCH, H * W, C).double().requires_grad_()
    weights = counted(BATCH, C, H, W).double().sqrt()
    (tokens_to_contiguous_map(tokens, (H, W)) * weights).sum().backward()
    assert torch.equal(tokens.grad, map_to_tokens(weights))
    assert tokens.grad.is_contiguous()


SIDES = st.integers(1, 9)


@settings(max_examples=50, derandomize=True, deadline=None, database=None)
@given(
    batch=st.integers(1, 3), h=SIDES, w=SIDES, channels=st.integers(1, 4), side=st.integers(1, 8)
)
def test_pairs_are_inverse(batch, h, w, channels, side):
    feature = counted(batch, channels, h, w)
    assert torch.equal(tokens_to_map(map_to_tokens(feature), (h, w)), feature)
    feature = counted(batch, channels, side * h, side * w)
    words = map_to_words(feature, side)
    assert words.shape == (batch * h * w, side**2, channels)
    assert torch.equal(words_to_map(words, (h, w), side), feature)


def test_crop_cuts_at_the_bottom_and_right():
    feature = counted(BATCH, C, H, W)
    assert torch.equal(crop(feature, (H - 1, W - 2)), feature[:, :, : H - 1, : W - 2])


def test_words_are_windows_of_the_map():
    words = counted(BATCH * H * W, 16, C)
    feature = words_to_map(words, (H, W))
    assert feature.shape == (BATCH, C, 4 * H, 4 * W)
    for b, y, x in itertools.product(range(BATCH), range(H), range(W)):
        window = feature[b, :, 4 * y : 4 * y + 4, 4 * x : 4 * x + 4]
        assert torch.equal(words[(b * H + y) * W + x], window.flatten(1).T)


def test_quads_are_windows_of_twice_the_side():
    words = counted(BATCH * H * W, 16, C)
    quads = words_to_quads(words, (H, W))
    windows = words_to_map(words, (H, W)).unfold(2, 8, 8).unfold(3, 8, 8)
    assert torch.equal(quads, windows.permute(0, 2, 3, 1, 4, 5).reshape(-1, C, 8, 8))


def test_tokens_that_do_not_fill_the_grid():
    with pytest.raises(ValueError, match='24 tokens do not fill a grid of 4x5'):
        tokens_to_map(counted(BATCH, H * W, C), (4, 5))


def test_a_map_that_does_not_divide_into_windows():
    with pytest.raises(ValueError, match='a map of 8x10 does not divide into 4x4 windows'):
        map_to_words(counted(1, C, 8, 10))


@pytest.mark.parametrize('hw', [(3, 8), (8, 3), (3, 5)])
def test_quads_of_an_odd_grid_are_padded_with_zeros(hw):
    h, w = hw
    words = counted(BATCH * h * w, 16, C)
    padded = F.pad(words_to_map(words, hw), (0, 4 * (w % 2), 0, 4 * (h % 2)))
    quads = words_to_quads(words, hw)
    assert torch.equal(quads, map_to_words(padded, 8).unflatten(1, (8, 8)).permute(0, 3, 1, 2))


@pytest.mark.parametrize('shape', [(25, 16, C), (24, 15, C)])
def test_words_that_do_not_fit_the_grid(shape):
    with pytest.raises(ValueError, match='do not fit a grid of 4x6 outer tokens'):
        words_to_map(counted(*shape), (H, W))
