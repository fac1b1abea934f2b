"""Attention compared with loops and with explicit logits, and its forms with each other."""

import math
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ptnt_mm.models.attention import InnerAttention, OuterAttention
from ptnt_mm.models.kernels import slicewise
from ptnt_mm.models.kernels.forms import (
    FEW_LOGITS,
    Explicit,
    Folded,
    Slicewise,
    choose_form,
    fold_factors,
)
from ptnt_mm.models.position_tables import Factors, FlatRelativePosition, GridRelativePosition

from . import golden

DIM, HEADS, RATIO = 12, 3, 2
NATIVE, NATIVE_KEYS = (6, 6), (3, 3)
GRIDS = [NATIVE, (5, 7), (1, 1), (4, 9)]


def build(eager: bool, ratio: int = RATIO, attn_drop: float = 0.0) -> OuterAttention:
    """An attention in double precision with golden weights."""
    return golden.filled(
        OuterAttention(DIM, HEADS, attn_drop, sr_ratio=ratio, eager=eager)
    ).double()


def key_hw(hw: tuple[int, int], ratio: int = RATIO) -> tuple[int, int]:
    return math.ceil(hw[0] / ratio), math.ceil(hw[1] / ratio)


def tokens(hw: tuple[int, int], batch: int = 2) -> Tensor:
    return torch.randn(batch, math.prod(hw), DIM, dtype=torch.float64)


def relative_table() -> Tensor:
    shape = 1, HEADS, math.prod(NATIVE), math.prod(NATIVE_KEYS)
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def by_hand(attn, queries: Tensor, keys: Tensor, bias: Tensor) -> Tensor:
    """One head of one image at a time, with all logits."""
    dim = queries.shape[2]
    width = dim // attn.num_heads
    key_rows, value_rows = attn.kv.weight[:dim], attn.kv.weight[dim:]
    images = []
    for image, image_keys in zip(queries, keys, strict=True):
        heads = []
        for head in range(attn.num_heads):
            rows = slice(head * width, (head + 1) * width)
            q = image @ attn.q.weight[rows].T
            k, v = image_keys @ key_rows[rows].T, image_keys @ value_rows[rows].T
            heads.append((q @ k.T / math.sqrt(width) + bias[head]).softmax(dim=1) @ v)
        images.append(torch.cat(heads, dim=1) @ attn.proj.weight.T + attn.proj.bias)
    return torch.stack(images)


def run(eager: bool, position: type | None, hw: tuple[int, int]) -> list[Tensor]:
    """The output for random tokens and a random table, and the gradients of all inputs."""
    torch.manual_seed(1)
    attn, outer, table = build(eager), tokens(hw).requires_grad_(), relative_table()
    factors, sources = None, [outer, *attn.parameters()]
    if position is not None:
        factors = position(NATIVE, NATIVE_KEYS).between(table, hw, key_hw(hw))
        sources.append(table)
    found = attn(outer, hw, attn.form(factors, outer))
    return [found, *torch.autograd.grad(found.square().sum(), sources)]


@pytest.mark.parametrize('hw', GRIDS)
@pytest.mark.parametrize('eager', [True, False])
def test_outer_attention_is_what_the_spec_writes(eager, hw):
    attn, outer, table = build(eager), tokens(hw), relative_table()
    factors = GridRelativePosition(NATIVE, NATIVE_KEYS).between(table, hw, key_hw(hw))
    found = attn(outer, hw, attn.form(factors, outer))
    expected = by_hand(attn, outer, attn.key_tokens(outer, hw), factors.bias()[0])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize('hw', GRIDS)
@pytest.mark.parametrize('position', [GridRelativePosition, FlatRelativePosition, None])
def test_fused_equals_eager_with_all_gradients(position, hw):
    eager, fused = (run(eager, position, hw) for eager in (True, False))
    torch.testing.assert_close(fused, eager, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('hw', GRIDS)
@pytest.mark.parametrize('ratio', [2, 4])
def test_border_keys_average_their_real_tokens(ratio, hw):
    attn, outer = build(True, ratio), tokens(hw)
    grid = outer.unflatten(1, hw)
    windows = [
        grid[:, y : y + ratio, x : x + ratio].mean(dim=(1, 2))
        for y in range(0, hw[0], ratio)
        for x in range(0, hw[1], ratio)
    ]
    found = attn.key_tokens(outer, hw)
    assert found.shape[1] == math.prod(key_hw(hw, ratio))
    torch.testing.assert_close(found, attn.norm(attn.linear(torch.stack(windows, dim=1))))


def test_without_reduction_keys_are_the_tokens():
    attn, outer = build(True, ratio=1), tokens((5, 7))
    assert attn.key_tokens(outer, (5, 7)) is outer
    assert not hasattr(attn, 'linear')


def test_inner_attention_stays_inside_a_sentence():
    attn = golden.filled(InnerAttention(DIM, HEADS, attn_drop=0.0, proj_drop=0.0)).double()
    words = torch.randn(5, 16, DIM, dtype=torch.float64)
    none = torch.zeros(HEADS, 1, 1, dtype=torch.float64)
    torch.testing.assert_close(attn(words), by_hand(attn, words, words, none))


@pytest.mark.parametrize('eager', [True, False])
def test_dropout_of_weights_keeps_the_mean(eager):
    """Over 4000 copies of one image the standard error is about 0.01."""
    attn, one = build(eager, attn_drop=0.3), tokens((2, 3), batch=1)
    form = attn.form(None, one)
    found = attn(one.expand(4000, -1, -1), (2, 3), form)
    expected = attn.eval()(one, (2, 3), form)
    assert found.std(dim=0).min() > 0.01
    torch.testing.assert_close(found.mean(dim=0), expected[0], rtol=0, atol=0.05)


@pytest.mark.parametrize(
    'build_attn', [InnerAttention, partial(OuterAttention, eager=True)], ids=['inner', 'outer']
)
def test_dropout_after_the_projection(build_attn):
    attn = build_attn(DIM, HEADS, attn_drop=0.0, proj_drop=0.5)
    where = [tokens((4, 4)).float()]
    if isinstance(attn, OuterAttention):
        where += [(4, 4), attn.form(None, where[0])]
    assert (attn(*where) == 0).float().mean().item() == pytest.approx(0.5, abs=0.13)
    assert not (attn.eval()(*where) == 0).any()


@pytest.mark.parametrize(('dtype', 'atol'), [(torch.float32, 1e-6), (torch.bfloat16, 0.02)])
def test_inner_attention_as_published(dtype, atol):
    """A GPU takes this form; under autocast it returns the same type."""
    fused, eager = (golden.filled(InnerAttention(DIM, HEADS, eager=e)) for e in (False, True))
    words = torch.randn(5, 16, DIM)
    expected = fused(words)
    with torch.autocast('cpu', torch.bfloat16, enabled=dtype == torch.bfloat16):
        found = eager(words)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), expected, rtol=0, atol=atol)


WIDTH = 5


def inputs(batch: int = 2, queries: int = 70, hw: tuple[int, int] = (3, 4)) -> list[Tensor]:
    """q, k, v and the three factors, in double precision, with gradients where they matter."""
    torch.manual_seed(0)
    shapes = [(batch, HEADS, n, WIDTH) for n in (queries, math.prod(hw), math.prod(hw))]
    shapes += [(1, HEADS, queries, 6), (hw[0], 2), (hw[1], 3)]
    tensors = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    for weights in tensors[4:]:  # the weights of a place add up to 1
        weights += 1 / weights.shape[1] - weights.mean(dim=1, keepdim=True)
    return [tensor.requires_grad_(i < 4) for i, tensor in enumerate(tensors)]


def written_down(q: Tensor, k: Tensor, v: Tensor, position: Factors) -> Tensor:
    bias = position.queries @ torch.kron(position.rows, position.columns).T
    return (q @ k.mT / math.sqrt(WIDTH) + bias).softmax(dim=-1) @ v


def results(form, tensors: list[Tensor]) -> list[Tensor]:
    """The output, and the gradients of q, k, v and the table's factor."""
    found = form(*tensors[:3], Factors(*tensors[3:]))
    weights = torch.linspace(-1, 1, found.numel(), dtype=found.dtype).view_as(found)
    return [found, *torch.autograd.grad((found * weights).sum(), tensors[:4])]


@pytest.mark.parametrize(
    ('batch', 'queries', 'hw'),
    [
        *((batch, queries, (3, 4)) for batch in (1, 2) for queries in (1, 32, 70)),
        (1, 70, (32, 300)),  # slices of 40 queries become 48
        (2, 33, (64, 400)),  # of 15, at least 16
    ],
    ids=str,
)
@pytest.mark.parametrize('threads', [1, 2, 64])
def test_slicewise(batch, queries, hw, threads):
    """Slices of 16 or 48 queries, or all at once; one, two or all heads at a time."""
    torch.set_num_threads(threads)
    tensors = inputs(batch, queries, hw)
    torch.testing.assert_close(
        results(slicewise.slicewise, tensors), results(written_down, tensors)
    )


@pytest.mark.parametrize(
    ('threads', 'heads', 'queries', 'size'),
    [
        (1, 4, 100, (1, 64)),
        (2, 4, 100, (2, 64)),
        (2, 3, 100, (2, 64)),
        (8, 3, 100, (3, 64)),
        (1, 4, 40, (1, 48)),
        (1, 4, 16, (4, 16)),
        (2, 9, 16, (6, 16)),
        (2, 8, 16, (8, 16)),
        (1, 3, 1, (3, 16)),
    ],
)
def test_slices_are_even(monkeypatch, threads, heads, queries, size):
    """A thread gets about 70 queries at a time, of equally many heads as any other."""
    monkeypatch.setattr(torch, 'get_num_threads', lambda: threads)
    q, k = torch.zeros(1, heads, queries, 1), torch.zeros(1, heads, slicewise.LOGITS // 70, 1)
    assert slicewise._slice_size(q, k) == size


@pytest.mark.parametrize(
    ('threads', 'heads', 'queries', 'size'),
    [
        (1, 3, 70, (3, 80)),
        (2, 4, 70, (2, 80)),
        (8, 4, 70, (1, 48)),
        (3, 4, 70, (4, 32)),
        (4, 6, 70, (3, 48)),
        (64, 3, 70, (3, 16)),
    ],
)
def test_parts_are_even(monkeypatch, threads, heads, queries, size):
    """Heads are divided evenly or stay together; queries are divided among the other threads."""
    monkeypatch.setattr(torch, 'get_num_threads', lambda: threads)
    q = torch.zeros(1, heads, queries, 1)
    many = math.ceil(threads * slicewise.PART / (heads * queries))
    assert slicewise._part_size(q, torch.zeros(1, heads, many, 1)) == size
    assert slicewise._part_size(q, torch.zeros(1, heads, many - 1, 1)) == (heads, queries)


@pytest.fixture
def _small_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slicewise, 'PART', 1)


@pytest.mark.usefixtures('_small_parts')
@pytest.mark.parametrize('threads', [2, 3, 4, 64])
def test_parts_on_threads(threads: int):
    """Some heads each, some queries each, or both."""
    tensors = inputs(2, 70, (3, 4))
    expected = results(written_down, tensors)
    torch.set_num_threads(threads)
    torch.testing.assert_close(results(slicewise.slicewise, tensors), expected)


@pytest.mark.usefixtures('_small_parts')
@pytest.mark.parametrize('mode', [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_threads_have_the_callers_mode(mode):
    """The threads of torch stay as they are."""
    tensors = inputs(2, 70, (3, 4))
    expected = results(written_down, tensors)[0]
    torch.set_num_threads(3)
    with mode():
        found = slicewise.slicewise(*tensors[:3], Factors(*tensors[3:]))
    torch.testing.assert_close(found, expected)
    assert torch.get_num_threads() == 3 and found.is_inference() == (mode is torch.inference_mode)


def test_slicewise_with_heads_after_tokens():
    """Queries in the layout of the projections: (B, N, heads, d) viewed as (B, heads, N, d)."""
    tensors = inputs()
    expected = results(written_down, tensors)
    strided = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in tensors[:3]]
    found = slicewise.slicewise(*strided, Factors(*tensors[3:]))
    torch.testing.assert_close(found, expected[0])
    assert found.transpose(1, 2).is_contiguous(), 'joining heads should copy nothing'


def folded(q: Tensor, k: Tensor, v: Tensor, position: Factors) -> Tensor:
    return fold_factors(position, WIDTH, q.dtype).attend(q, k, v)


@pytest.mark.parametrize('batch', [1, 2])
def test_fold(batch):
    tensors = inputs(batch)
    torch.testing.assert_close(results(folded, tensors), results(written_down, tensors))


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
@pytest.mark.parametrize('spread', [0.1, 1, 10])
def test_a_folded_bias_in_lower_precision(dtype, spread):
    """Both factors are rounded once, so the error is at most as large as the docstring says."""
    *_, queries, rows, columns = (tensor.detach() for tensor in inputs())
    factors = Factors(queries * spread, rows, columns)
    lower = fold_factors(factors, WIDTH, dtype)
    found = lower.queries[0].double().transpose(0, 1) @ lower.keys[0, :, 0].double().T
    difference = (found / math.sqrt(WIDTH) - factors.bias()[0]).abs()
    bound = Factors(factors.queries.abs(), rows.abs(), columns.abs()).bias()[0]
    assert (difference <= 1.1 * torch.finfo(dtype).eps * bound).all()
    assert difference.max() > 0.1 * torch.finfo(dtype).eps * bound.max(), 'it is not exact'


@pytest.mark.parametrize(('device', 'narrow'), [('cpu', False), ('meta', True)])
def test_fold_pads_widths_for_kernels(monkeypatch, device, narrow):
    """A CPU's kernel takes values that are as wide as queries; others take narrow ones."""
    widths = []
    kernel = torch.nn.functional.scaled_dot_product_attention

    def spy(q, k, v, **options):
        widths.append((q.shape[-1], k.shape[-1], v.shape[-1]))
        return kernel(q, k, v, **options)

    monkeypatch.setattr(torch.nn.functional, 'scaled_dot_product_attention', spy)
    tensors = [tensor.to(device) for tensor in inputs()]
    if device == 'cpu':
        torch.testing.assert_close(results(folded, tensors), results(written_down, tensors))
    else:
        assert folded(*tensors[:3], Factors(*tensors[3:])).shape == tensors[0].shape
    assert widths == [(16, 16, 5 if narrow else 16)], '5 of the head and 6 of the table, padded'


def test_a_bias_is_folded_once_for_the_blocks_of_a_stage(monkeypatch):
    attn, table = build(eager=False).float(), relative_table().float()
    position = GridRelativePosition(NATIVE, NATIVE_KEYS)
    factors = position.between(table, (4, 9), key_hw((4, 9)))
    small = attn.form(factors, tokens((4, 9)).float())
    assert isinstance(small, Explicit)
    torch.testing.assert_close(small.bias, factors.bias())
    hw = 24, 26  # 292,032 logits
    outer, factors = tokens(hw).float(), position.between(table, hw, key_hw(hw))
    sliced = attn.form(factors, outer)
    assert isinstance(sliced, Slicewise) and sliced.factors.queries.mT.is_contiguous()
    assert all(map(torch.equal, sliced.factors, factors))
    with monkeypatch.context() as patched:
        patched.setattr(torch.jit, 'is_tracing', lambda: True)
        assert torch.equal(attn.form(factors, outer).bias, factors.bias()), 'for any runtime'
    lower = attn.form(factors, outer.bfloat16())
    assert isinstance(lower, Folded) and lower.queries.dtype == torch.bfloat16
    expected = attn(outer, hw, sliced)
    with torch.autocast('cpu', torch.bfloat16):
        found = attn(outer, hw, lower)
    torch.testing.assert_close(found.float(), expected, rtol=0, atol=0.05)


def test_the_operator_keeps_the_rules_of_torch():
    """Shapes for symbolic tensors, registration of gradients, no hidden aliases."""
    torch.library.opcheck(slicewise._operator, inputs(queries=5))


def test_who_runs_slicewise():
    assert slicewise.runs_slicewise(torch.zeros(1))
    assert slicewise.runs_slicewise(torch.zeros(1, dtype=torch.float64))
    assert not slicewise.runs_slicewise(torch.zeros(1, dtype=torch.bfloat16))
    assert not slicewise.runs_slicewise(torch.zeros(1, device='meta'))


def test_explicit_attention():
    tensors = inputs()
    found = results(lambda *args: Explicit(args[3].bias()).attend(*args[:3]), tensors)
    torch.testing.assert_close(found, results(written_down, tensors))


class Operators(TorchDispatchMode):
    """The names of the operators that are called."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.names.add(operator.name())
        return operator(*args, **kwargs or {})

    @property
    def are_slicewise(self) -> bool:
        return 'ptnt_mm::biased_attention' in self.names


# The most queries of an image for which every logit is stored.
FEW = FEW_LOGITS // (HEADS * 12)


@pytest.mark.parametrize(
    ('queries', 'dropout', 'form', 'sliced'),
    [
        (FEW, 0.0, Explicit, False),
        (FEW + 1, 0.0, Slicewise, True),
        (FEW + 1, 1e-9, Slicewise, False),
    ],
)
def test_which_form_is_taken(queries, dropout, form, sliced):
    """By the number of logits of an image, if nothing is dropped."""
    tensors = inputs(queries=queries)

    def attend(q: Tensor, k: Tensor, v: Tensor, factors: Factors) -> Tensor:
        chosen = choose_form(factors, q.transpose(1, 2).flatten(2), HEADS, eager=False)
        assert isinstance(chosen, form)
        with Operators() as called:
            attended = chosen.attend(q, k, v, dropout)
        assert called.are_slicewise == sliced
        return attended

    torch.testing.assert_close(results(attend, tensors), results(written_down, tensors))


@pytest.mark.parametrize(
    ('module', 'state'),
    [(torch.compiler, 'is_compiling'), (torch.jit, 'is_tracing')],
    ids=['compiled', 'traced'],
)
def test_a_graph_takes_the_same_form_for_any_size(monkeypatch, module, state):
    tensors = inputs()
    with Operators() as called, monkeypatch.context() as patched:
        patched.setattr(module, state, lambda: True)
        Slicewise(Factors(*tensors[3:])).attend(*tensors[:3])
    assert called.are_slicewise


def test_torch_func_takes_no_operators_of_our_own():
    q, k, v, *position = (tensor.detach() for tensor in inputs())

    def loss(q: Tensor) -> Tensor:
        return Slicewise(Factors(*position)).attend(q, k, v).square().sum()

    with Operators() as called:
        found = torch.func.grad(loss)(q)
    assert called.names and not called.are_slicewise
    with Operators() as called:
        (expected,) = torch.autograd.grad(loss(q.requires_grad_()), q)
    assert called.are_slicewise
    torch.testing.assert_close(found, expected)
