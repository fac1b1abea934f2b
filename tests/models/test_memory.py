"""A function in slices compared with the same function at once."""

import pytest
import torch
from torch import nn

from ptnt_mm.models.kernels.memory import RECOMPUTE_BYTES, SLICE_BYTES, in_slices

ROWS = 150
WIDTH = SLICE_BYTES // (12 * 4)  # slices have 12 rows
SLICES = [12] * 12 + [6]


@pytest.fixture
def calls() -> list[int]:
    """Lengths that the function was called with."""
    return []


@pytest.fixture
def widen(calls):
    """A function of rows with a result per row and weights."""
    torch.manual_seed(0)
    linear = nn.Linear(3, 8)

    def function(rows):
        calls.append(len(rows))
        return linear(rows).relu()

    function.weights = list(linear.parameters())
    return function


def test_without_gradients(widen, calls):
    rows = torch.randn(ROWS, 3)
    with torch.no_grad():
        expected = widen(rows)
        calls.clear()
        found = in_slices(widen, rows, WIDTH)
    assert calls == SLICES
    torch.testing.assert_close(found, expected)


def test_gradients_of_rows_and_weights(widen, calls):
    rows = torch.randn(ROWS, 3, requires_grad=True)

    def gradients(found):
        return torch.autograd.grad(found.square().sum(), [rows, *widen.weights])

    expected = gradients(widen(rows))
    calls.clear()
    found = gradients(in_slices(widen, rows, WIDTH))
    assert sorted(calls) == sorted(SLICES * 2), 'every slice, forward and backward'
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)


def test_what_is_random_repeats_in_the_backward_pass(calls):
    rows = torch.ones(ROWS, 3, requires_grad=True)
    found = in_slices(lambda part: nn.functional.dropout(part, 0.5), rows, WIDTH)
    (gradient,) = torch.autograd.grad(found.sum(), rows)
    assert torch.equal(gradient, found)
    assert 0.3 < (found == 0).float().mean() < 0.7


def test_torch_func_gets_whole_rows(widen, calls):
    """Recomputation would raise under it."""
    rows = torch.randn(ROWS, 3)
    found = torch.func.grad(lambda x: in_slices(widen, x, WIDTH).sum())(rows)
    assert calls == [ROWS]
    (expected,) = torch.autograd.grad(widen(rows.requires_grad_()).sum(), rows)
    torch.testing.assert_close(found, expected)


def test_few_rows_stay_whole(widen, calls):
    few = RECOMPUTE_BYTES // (4 * WIDTH)
    in_slices(widen, torch.randn(few, 3), WIDTH)
    with torch.no_grad():
        in_slices(widen, torch.randn(12, 3), WIDTH)
    assert calls == [few, 12] and few < ROWS


def test_compiled_code_stays_whole(widen, calls):
    rows = torch.randn(ROWS, 3)
    compiled = torch.compile(lambda x: in_slices(widen, x, WIDTH), backend='eager')
    torch.testing.assert_close(compiled(rows), widen(rows))
    assert set(calls) == {ROWS}
