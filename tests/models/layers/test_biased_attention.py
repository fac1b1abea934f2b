"""Both forms of biased attention compared with explicit logits."""

import math

import pytest
import torch
from torch import Tensor

from ptnt_mm.models.layers import biased_attention, cpu_attention
from ptnt_mm.models.layers.biased_attention import (
    attend_biased,
    explicit_attention,
    fold,
)
from ptnt_mm.models.layers.cpu_attention import runs_slicewise, slicewise
from ptnt_mm.models.layers.relative_position import Factors

HEADS, WIDTH = 3, 5


def inputs(batch: int = 2, queries: int = 70, hw: tuple[int, int] = (3, 4)) -> list[Tensor]:
    """q, k, v and the three factors, in double precision, with gradients where they matter."""
    torch.manual_seed(0)
    shapes = [(batch, HEADS, n, WIDTH) for n in (queries, math.prod(hw), math.prod(hw))]
    shapes += [(1, HEADS, queries, 6), (hw[0], 2), (hw[1], 3)]
    tensors = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    for weights in tensors[4:]:  # the weights of a place add up to 1
        weights /= weights.sum(dim=1, keepdim=True)
    return [tensor.requires_grad_(i < 4) for i, tensor in enumerate(tensors)]


def written_down(q: Tensor, k: Tensor, v: Tensor, position: Factors) -> Tensor:
    bias = position.queries @ torch.kron(position.rows, position.columns).T
    return (q @ k.mT / math.sqrt(WIDTH) + bias).softmax(dim=-1) @ v


def results(form, tensors: list[Tensor]) -> list[Tensor]:
    """The output, and the gradients of q, k, v and the table's factor."""
    found = form(*tensors[:3], Factors(*tensors[3:]))
    weights = torch.linspace(-1, 1, found.numel(), dtype=found.dtype).view_as(found)
    return [found, *torch.autograd.grad((found * weights).sum(), tensors[:4])]


@pytest.mark.parametrize('logits', [1, 40 * HEADS * 12, 2**22])
@pytest.mark.parametrize('batch', [1, 2])
@pytest.mark.parametrize('queries', [1, 32, 70])
def test_slicewise(monkeypatch, batch, queries, logits):
    """One slice of 32 queries after the other, or all at once."""
    monkeypatch.setattr(cpu_attention, 'SLICE_LOGITS', logits)
    tensors = inputs(batch, queries)
    torch.testing.assert_close(results(slicewise, tensors), results(written_down, tensors))


def test_slicewise_with_heads_after_tokens():
    """Queries in the layout of the projections: (B, N, heads, d) viewed as (B, heads, N, d)."""
    tensors = inputs()
    expected = results(written_down, tensors)
    strided = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in tensors[:3]]
    found = slicewise(*strided, Factors(*tensors[3:]))
    torch.testing.assert_close(found, expected[0])
    assert found.transpose(1, 2).is_contiguous(), 'joining heads should copy nothing'


@pytest.mark.parametrize('batch', [1, 2])
def test_fold(batch):
    tensors = inputs(batch)
    torch.testing.assert_close(results(fold, tensors), results(written_down, tensors))


def test_fold_pads_widths_for_kernels(monkeypatch):
    widths = []
    kernel = torch.nn.functional.scaled_dot_product_attention

    def spy(q, k, v, **options):
        widths.append((q.shape[-1], k.shape[-1], v.shape[-1]))
        return kernel(q, k, v, **options)

    monkeypatch.setattr(biased_attention.F, 'scaled_dot_product_attention', spy)
    fold(*inputs()[:3], Factors(*inputs()[3:]))
    assert widths == [(16, 16, 16)], '5 of the head and 6 of the table, on to a multiple of 8'


def test_the_operator_keeps_the_rules_of_torch():
    """Shapes for symbolic tensors, registration of gradients, no hidden aliases."""
    torch.library.opcheck(cpu_attention._operator, inputs(queries=5))


def test_who_runs_slicewise():
    assert runs_slicewise(torch.zeros(1)) and runs_slicewise(torch.zeros(1, dtype=torch.float64))
    assert not runs_slicewise(torch.zeros(1, dtype=torch.bfloat16))
    assert not runs_slicewise(torch.zeros(1, device='meta'))


def test_explicit_attention():
    tensors = inputs()
    found = results(lambda q, k, v, position: explicit_attention(q, k, v, position.bias()), tensors)
    torch.testing.assert_close(found, results(written_down, tensors))


@pytest.fixture
def forms(monkeypatch) -> list[str]:
    """The names of the forms that :func:`attend_biased` took."""
    taken = []

    def spy_on(form):
        def spy(*args):
            taken.append(form.__name__)
            return form(*args)

        return spy

    for form in (explicit_attention, slicewise, fold):
        monkeypatch.setattr(biased_attention, form.__name__, spy_on(form))
    return taken


@pytest.mark.parametrize(
    ('few', 'dropout', 'kernel', 'form'),
    [
        (2 * HEADS * 70 * 12, 0.0, cpu_attention._KERNEL, 'explicit_attention'),
        (2 * HEADS * 70 * 12 - 1, 0.0, cpu_attention._KERNEL, 'slicewise'),
        (2**20, 1e-9, cpu_attention._KERNEL, 'fold'),
        (2**20, 0.0, None, 'fold'),
    ],
)
def test_which_form_is_taken(monkeypatch, forms, few, dropout, kernel, form):
    """By the number of logits; without torch's private kernel, a CPU has another form."""
    monkeypatch.setattr(biased_attention, 'FEW_LOGITS', few)
    monkeypatch.setattr(cpu_attention, '_KERNEL', kernel)
    tensors = inputs()
    found = results(lambda *args: attend_biased(*args, dropout), tensors)
    torch.testing.assert_close(found, results(written_down, tensors))
    assert forms == [form]


def test_torch_func_takes_no_operators_of_our_own(monkeypatch, forms):
    monkeypatch.setattr(biased_attention, 'FEW_LOGITS', 0)
    q, k, v, *position = (tensor.detach() for tensor in inputs())

    def loss(q: Tensor) -> Tensor:
        return attend_biased(q, k, v, Factors(*position), 0.0).square().sum()

    found = torch.func.grad(loss)(q)
    assert forms == ['fold']
    (expected,) = torch.autograd.grad(loss(q.requires_grad_()), q)
    assert forms == ['fold', 'slicewise']
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    'schema',
    [
        'changed(Tensor query, Tensor key, Tensor value, *, Tensor? mask=None) -> (Tensor, Tensor)',
        'changed(Tensor query, Tensor key, Tensor value, *, Tensor? attn_mask=None) -> Tensor',
    ],
)
def test_a_kernel_that_torch_changed_is_not_called(monkeypatch, schema):
    class Changed:
        class default:
            _schema = torch._C.parse_schema(schema)

    name = '_scaled_dot_product_flash_attention_for_cpu'
    monkeypatch.setattr(torch.ops.aten, name, Changed, raising=False)
    assert cpu_attention._kernel() is None
    monkeypatch.undo()
    assert cpu_attention._kernel() is cpu_attention._KERNEL is not None


@pytest.mark.parametrize(
    ('place', 'name'),
    [
        (torch.ops.aten, '_scaled_dot_product_flash_attention_for_cpu'),
        (torch, '_softmax_backward_data'),
        (torch._C, '_are_functorch_transforms_active'),
    ],
    ids=lambda value: value if isinstance(value, str) else '',
)
def test_a_torch_without_a_private_function_takes_another_form(monkeypatch, forms, place, name):
    monkeypatch.setattr(place, name, None, raising=False)
    monkeypatch.setattr(cpu_attention, '_KERNEL', cpu_attention._kernel())
    tensors = inputs()
    found = results(lambda *args: attend_biased(*args, 0.0), tensors)
    torch.testing.assert_close(found, results(written_down, tensors))
    assert forms == ['fold']
