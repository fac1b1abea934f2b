"""Resizing compared with hand-computed weights of the bicubic kernel."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from ptnt_mm.models.position_tables import (
    MOST_KEPT,
    FlatRelativePosition,
    GridRelativePosition,
    axis_weights,
    resize_grid,
)

NATIVE = (6, 6)
KEYS = (3, 3)
GRIDS = [((6, 6), (3, 3)), ((4, 9), (2, 5)), ((11, 5), (6, 3)), ((1, 1), (1, 1)), ((13, 2), (7, 1))]
POSITIONS = [GridRelativePosition, FlatRelativePosition]


def kernel(distance: float) -> float:
    """Keys' cubic convolution with a = -0.75."""
    a, x = -0.75, abs(distance)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def line_matrix(length: int, new: int) -> Tensor:
    """Weights (new, length) along one axis: corners not aligned, border places repeated."""
    weights = torch.zeros(new, length, dtype=torch.float64)
    for row in range(new):
        centre = (row + 0.5) * length / new - 0.5
        for place in range(math.floor(centre) - 1, math.floor(centre) + 3):
            weights[row, min(max(place, 0), length - 1)] += kernel(centre - place)
    return weights


def grid_matrix(from_hw: tuple[int, int], to_hw: tuple[int, int]) -> Tensor:
    """Weights (h'*w', h*w) over a grid whose places are counted row by row."""
    return torch.kron(line_matrix(from_hw[0], to_hw[0]), line_matrix(from_hw[1], to_hw[1]))


def matrices(position: type, query_hw: tuple, key_hw: tuple) -> tuple[Tensor, Tensor]:
    """Q and K of the resized table Q R K^T."""
    if position is GridRelativePosition:
        return grid_matrix(NATIVE, query_hw), grid_matrix(KEYS, key_hw)
    queries = line_matrix(math.prod(NATIVE), math.prod(query_hw))
    return queries, line_matrix(math.prod(KEYS), math.prod(key_hw))


def relative_table() -> Tensor:
    return torch.randn(1, 2, math.prod(NATIVE), math.prod(KEYS), dtype=torch.float64)


@pytest.mark.parametrize('to_hw', [(4, 9), (13, 6), (6, 13), (1, 1), (17, 2)])
def test_resize_grid_is_bicubic(to_hw):
    table = torch.randn(1, 36, 5, dtype=torch.float64)
    torch.testing.assert_close(
        resize_grid(table, NATIVE, to_hw), grid_matrix(NATIVE, to_hw) @ table
    )


def test_resize_grid_leaves_the_native_grid_alone():
    table = torch.randn(1, 36, 5)
    assert resize_grid(table, NATIVE, NATIVE) is table


@pytest.mark.parametrize(('query_hw', 'key_hw'), GRIDS)
@pytest.mark.parametrize('position', POSITIONS)
def test_bias_is_the_table_between_two_matrices(position, query_hw, key_hw):
    table = relative_table()
    queries, keys = matrices(position, query_hw, key_hw)
    found = position(NATIVE, KEYS).between(table, query_hw, key_hw).bias()
    torch.testing.assert_close(found, queries @ table @ keys.T)


@pytest.mark.parametrize(('query_hw', 'key_hw'), GRIDS)
@pytest.mark.parametrize('position', POSITIONS)
def test_factors_multiply_to_the_bias(position, query_hw, key_hw):
    factors = position(NATIVE, KEYS).between(relative_table(), query_hw, key_hw)
    assert factors.queries.shape == (1, 2, math.prod(query_hw), math.prod(KEYS))
    assert factors.keys().shape == (math.prod(key_hw), math.prod(KEYS))
    torch.testing.assert_close(factors.queries @ factors.keys().T, factors.bias())


@pytest.mark.parametrize('key_hw', [(3, 3), (5, 2), (1, 7)])
@pytest.mark.parametrize('position', POSITIONS)
def test_what_a_key_takes_from_the_table_adds_up_to_one(position, key_hw):
    """The CPU form relies on this: it subtracts one number from all logits of a query."""
    keys = position(NATIVE, KEYS).between(relative_table(), (4, 9), key_hw).keys()
    torch.testing.assert_close(keys.sum(dim=1), torch.ones(len(keys), dtype=keys.dtype))


@pytest.mark.parametrize('position', POSITIONS)
def test_the_native_grid_changes_nothing(position):
    table = relative_table()
    factors = position(NATIVE, KEYS).between(table, NATIVE, KEYS)
    assert torch.equal(factors.bias(), table)
    assert torch.equal(factors.queries, table)
    assert torch.equal(factors.keys(), torch.eye(math.prod(KEYS), dtype=table.dtype))


def test_only_the_grid_resize_distinguishes_grids_of_one_area():
    table = relative_table()
    flat, grid = (
        cls(NATIVE, KEYS).between(table, (4, 9), (1, 9)).bias() for cls in reversed(POSITIONS)
    )
    assert torch.equal(flat, table)
    assert not torch.allclose(grid, table)


def test_resize_from_a_grid_that_is_no_square():
    table = torch.randn(1, 2, 4 * 6, 2 * 3, dtype=torch.float64)
    found = GridRelativePosition.resize(table, (4, 6), (5, 5), (2, 3), (3, 4))
    queries, keys = grid_matrix((4, 6), (5, 5)), grid_matrix((2, 3), (3, 4))
    torch.testing.assert_close(found, queries @ table @ keys.T)


@pytest.mark.parametrize('position', POSITIONS)
def test_the_table_gets_exact_gradients(position):
    table = torch.randn(1, 1, 4, 4, dtype=torch.float64, requires_grad=True)
    position = position((2, 2), (2, 2))
    assert torch.autograd.gradcheck(lambda t: position.between(t, (3, 5), (2, 3)).bias(), table)
    assert torch.autograd.gradcheck(lambda t: position.between(t, (3, 5), (2, 3))[0], table)


def test_a_grid_table_gets_exact_gradients():
    table = torch.randn(1, 4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda table: resize_grid(table, (2, 2), (3, 5)), table)


def test_resizing_is_exact_under_autocast():
    table = torch.randn(1, 36, 8)
    plain = resize_grid(table, (6, 6), (5, 9))
    with torch.autocast('cpu', dtype=torch.bfloat16):
        assert torch.equal(resize_grid(table, (6, 6), (5, 9)), plain)


def weights(*to_hw: int) -> tuple[Tensor, Tensor]:
    """Those of a grid to which no other test of this process resizes 101 x 103 places."""
    return axis_weights((101, 103), to_hw, torch.zeros(1))


def test_interpolation_weights_are_computed_once():
    like = torch.zeros(1)
    first, second = weights(2, 3), weights(2, 3)
    assert first[0] is second[0] and first[1] is second[1]
    assert axis_weights((101, 103), (2, 3), like.double())[0].dtype == torch.float64
    assert axis_weights((101, 103), (2, 3), like.to('meta'))[0].is_meta
    for side in range(1, MOST_KEPT):
        torch.testing.assert_close(weights(4, side)[1].sum(1), torch.ones(side))
    assert weights(2, 3)[0] is not first[0], 'the oldest are dropped'
    torch.testing.assert_close(weights(2, 3), first)


def test_kept_weights_serve_training_after_inference():
    with torch.inference_mode():
        kept = weights(5, 6)
    table = torch.randn(101 * 103, 5, requires_grad=True)
    resize_grid(table, (101, 103), (5, 6)).sum().backward()
    assert weights(5, 6)[0] is kept[0] and table.grad.abs().sum() > 0


def test_weights_of_a_tracer_are_not_kept():
    with FakeTensorMode():
        fake = weights(7, 8)
    traced = []

    def function(x: Tensor) -> Tensor:
        traced.extend(weights(7, 8))
        return x * traced[0].sum()

    torch.jit.trace(function, torch.zeros(4), check_trace=False)
    kept, again = weights(7, 8), weights(7, 8)
    assert not any(one is other for one in kept for other in (*fake, *traced))
    assert all(one is other and type(one) is Tensor for one, other in zip(kept, again, strict=True))
    torch.jit.trace(function, torch.zeros(4), check_trace=False)
    assert not any(one is other for one in kept for other in traced), 'a graph owns its weights'


def test_stand_ins_get_weights_of_their_own():
    """A real tensor kept by an earlier call would be refused, and symbolic sizes have no hash."""
    table = torch.randn(4, 5)
    expected = resize_grid(table, (2, 2), (3, 4))
    mode = FakeTensorMode()
    with mode:
        assert resize_grid(mode.from_tensor(table), (2, 2), (3, 4)).shape == expected.shape

    def resize(table: Tensor, image: Tensor) -> Tensor:
        return resize_grid(table, (2, 2), tuple(image.shape))

    graph = make_fx(resize, tracing_mode='symbolic')(table, torch.zeros(3, 4))
    torch.testing.assert_close(graph(table, torch.zeros(3, 4)), expected)
    assert torch.equal(resize_grid(table, (2, 2), (3, 4)), expected)


def test_transforms_of_torch_func_leave_nothing_behind():
    table = torch.randn(4, 5)

    def loss(table: Tensor) -> Tensor:
        return resize_grid(table, (2, 2), (3, 3)).pow(3).sum()

    first, second = (torch.func.hessian(loss)(table) for _ in range(2))
    assert torch.equal(first, second) and torch.equal(
        torch.func.grad(loss)(table), torch.func.grad(loss)(table)
    )


def test_many_threads_share_the_weights():
    """More of them than are kept."""

    def side(i: int) -> int:
        return i % (MOST_KEPT + 50) + 1

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: weights(side(i), 9)[0], range(2 * MOST_KEPT)))
    assert all(len(rows) == side(i) for i, rows in enumerate(found))
