"""torch.compile and torch.export: one graph, any size, the same numbers."""

import shutil
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.exc import RecompileError
from torch._dynamo.testing import CompileCounterWithBackend
from torch.export import Dim
from torch.torch_version import TorchVersion

from ptnt_mm.models import CPVT, TNT, PyramidTNT, TransposedConvNeck
from ptnt_mm.models.attention import OuterAttention
from ptnt_mm.models.kernels.forms import Slicewise
from ptnt_mm.models.position_tables import Factors, GridRelativePosition

from . import golden

pytestmark = pytest.mark.slow


class Pyramid(nn.Module):
    """A backbone and a neck, as a detector runs them."""

    def __init__(self, backbone: PyramidTNT):
        super().__init__()
        self.backbone = backbone
        self.neck = golden.filled(TransposedConvNeck(backbone.out_channels))

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        return self.neck(self.backbone(image))


def results(run, model: nn.Module, image: Tensor) -> list[Tensor]:
    """Outputs and gradients of all parameters."""
    outputs = run(image)
    loss = sum((o * torch.linspace(-1, 1, o.numel()).view(o.shape)).sum() for o in outputs)
    return [*outputs, *torch.autograd.grad(loss, list(model.parameters()))]


def same_draws(compiled, model: nn.Module, image: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """The results of compiled and of plain code that drop the same branches and values."""
    torch.manual_seed(1)
    found = results(compiled, model, image)
    torch.manual_seed(1)
    return found, results(model, model, image)


@pytest.fixture
def build_shallow(micro_arch) -> Callable[..., PyramidTNT]:
    """One block per stage: only the first depends on sizes."""
    torch._dynamo.reset()
    arch = dict(micro_arch, depths=(1,) * 4)

    def build(words: int = 4, **options) -> PyramidTNT:
        """The first ``words`` stages have inner transformers."""
        inner_depths = tuple(int(i < words) for i in range(4))
        return golden.filled(PyramidTNT(dict(arch, inner_depths=inner_depths), **options)).eval()

    return build


def test_training_at_a_static_size(build_shallow):
    """The eager form of attention, with dropped branches and dropout."""
    options = dict(drop_path_rate=0.3, drop_rate=0.1, attn_drop_rate=0.1, attention='eager')
    model = Pyramid(build_shallow(out_indices=(0,), **options)).double().train()
    compiled = torch.compile(model, backend='aot_eager', fullgraph=True, dynamic=False)
    torch.testing.assert_close(*same_draws(compiled, model, golden.image(2, 61, 93).double()))


@pytest.mark.timeout(300)
def test_training_is_one_graph_for_two_sizes(build_shallow):
    """The fused form of attention, in blocks that are recomputed, with the same dropout.

    Sizes that are multiples of 64 share the graph, except in torch 2.6.
    """
    options = dict(drop_path_rate=0.3, drop_rate=0.1, attn_drop_rate=0.1, with_cp=True)
    model = build_shallow(out_indices=(0,), **options).double().train()
    counter, graphs = CompileCounterWithBackend('aot_eager'), []
    compiled = torch.compile(model, backend=counter, fullgraph=True, dynamic=True)
    # With floats as inputs of the graph, torch would compile it twice.
    with torch._dynamo.config.patch(specialize_float=True):
        for hw in [(192, 256), (256, 192)]:
            image = golden.image(2, *hw).double()
            torch.testing.assert_close(*same_draws(compiled, model, image))
            graphs.append(counter.frame_count)
    if TorchVersion(torch.__version__) >= '2.11':
        assert graphs == [1, 1], 'another size was compiled again'


def test_the_folded_bias_is_one_graph():
    """The form for a GPU, lower precisions and dropout of attention."""
    torch._dynamo.reset()
    q, k, v = torch.randn(3, 2, 2, 6, 4)
    factors = Factors(torch.randn(1, 2, 6, 4), torch.eye(2), torch.randn(3, 2))
    compiled = torch.compile(Slicewise.attend, backend='eager', fullgraph=True)
    found = compiled(Slicewise(factors), q, k, v, 1e-9)
    torch.testing.assert_close(found, Slicewise(factors).attend(q, k, v, 1e-9))


@pytest.mark.parametrize(
    'build_plain',
    [
        lambda: TNT(
            dict(depth=1, outer_dim=16, inner_dim=4, outer_heads=2, inner_heads=1, words=16)
        ),
        lambda: CPVT(dict(depth=2, dim=16, heads=4)),
        lambda: CPVT(dict(depth=1, dim=16, heads=4), position='sinusoidal'),
    ],
    ids=['tnt', 'cpvt', 'sinusoidal'],
)
@torch.no_grad()
def test_backbones_of_one_scale_are_one_graph_for_any_size(build_plain):
    torch._dynamo.reset()
    model, counter = golden.filled(build_plain()).eval(), CompileCounterWithBackend('eager')
    compiled = torch.compile(model, backend=counter, fullgraph=True, dynamic=True)
    for hw in [(192, 256), (256, 192), (150, 313)]:
        image = golden.image(2, *hw)
        torch.testing.assert_close(compiled(image), model(image))
    assert counter.frame_count <= 2, 'three sizes are not three compilations'


@pytest.mark.timeout(300)
@torch.no_grad()
def test_how_many_graphs_there_are(build_shallow):
    """Equal sides and the pretraining size, 128 px, are no special cases, except in torch 2.6."""
    shallow = build_shallow(out_indices=(0,))
    counter = CompileCounterWithBackend('eager')
    compiled = torch.compile(shallow, backend=counter, fullgraph=True, dynamic=True)
    sizes = [(2, 192, 256), (3, 256, 192), (2, 128, 256), (2, 384, 128), (2, 192, 192)]
    for batch, *hw in [*sizes, (2, 128, 128)]:
        image = golden.image(batch, *hw)
        torch.testing.assert_close(compiled(image), shallow(image), rtol=1e-4, atol=1e-4)
    graphs = 1 if TorchVersion(torch.__version__) >= '2.11' else 2
    assert counter.frame_count == graphs, 'sides that are multiples of 64 share a compilation'
    # A single image needs a separate graph, which takes as long again.
    with torch._dynamo.config.patch(error_on_recompile=True), pytest.raises(RecompileError):
        compiled(golden.image(1, 192, 256))


@pytest.mark.timeout(300)
@torch.no_grad()
def test_export_with_dynamic_sizes(build_shallow):
    """All numbers of images, all sides from 33 pixels: two tokens of the last stage.

    The fourth stage is like the third: it pools no keys, and has no words here. With both, and with
    all words, the export takes three times as long.
    """
    shallow = build_shallow(words=2, out_indices=(2,))
    example = golden.image(2, 40, 72)
    sizes = ({0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO},)
    exported = torch.export.export(shallow, (example,), dynamic_shapes=sizes, strict=False)
    if hasattr(torch.compiler, 'is_exporting'):
        assert_standard_operators(exported.graph)
    program = exported.module()
    for batch, *hw in [(2, 40, 72), (1, 33, 45), (3, 256, 192), (2, 128, 128), (1, 200, 336)]:
        image = golden.image(batch, *hw)
        torch.testing.assert_close(program(image), shallow(image), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_traces_have_standard_operators(build_shallow):
    shallow, image = build_shallow(), golden.image(1, 72, 104)
    run = torch.jit.trace(shallow, image, check_trace=False)
    assert_standard_operators(run.inlined_graph)
    torch.testing.assert_close(run(image), shallow(image), rtol=1e-4, atol=1e-4)


def assert_standard_operators(graph) -> None:
    """As other runtimes need them."""
    assert 'ptnt_mm::' not in str(graph) and 'ptnt_mm.biased' not in str(graph)


def build_tnt(**options) -> TNT:
    row = dict(depth=2, outer_dim=16, inner_dim=4, outer_heads=2, inner_heads=2, words=16)
    return TNT(row, **options).eval()


def build_cpvt(**options) -> CPVT:
    return CPVT(dict(depth=2, dim=16, heads=2), **options).eval()


@pytest.mark.parametrize('options', [{}, dict(with_cp=True), dict(position='peg')], ids=str)
def test_traces_pass_torchs_own_check(build_shallow, options: dict):
    """It traces once more, without autograd, and compares graphs and outputs."""
    model, image = build_shallow(**options), golden.image(1, 72, 104)
    run = torch.jit.trace(model, image)
    torch.testing.assert_close(run(image), model(image), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('build', [build_tnt, build_cpvt])
@pytest.mark.parametrize('with_cp', [False, True])
def test_traces_of_plain_backbones_pass_it(build, with_cp):
    torch.jit.trace(build(with_cp=with_cp), golden.image(1, 32, 48))


@pytest.mark.skipif(shutil.which('g++') is None, reason='torch.compile needs a C++ compiler')
def test_generated_code():
    """Inductor's own kernels around our operator, forward and backward, in single precision.

    Of an attention with its table, which is all that differs from the layers of PyTorch. On a GPU,
    this mode also replays the kernels as a CUDA graph.
    """
    torch._dynamo.reset()
    attention = golden.filled(OuterAttention(16, 2))
    attention.table = nn.Parameter(torch.randn(1, 2, 16, 16))
    resize = GridRelativePosition((4, 4), (4, 4))
    tokens = torch.randn(1, 48, 16)

    def attend(tokens: Tensor) -> tuple[Tensor]:
        factors = resize.between(attention.table, (6, 8), (6, 8))
        return (attention(tokens, (6, 8), attention.form(factors, tokens)),)

    compiled = torch.compile(attend, mode='reduce-overhead', fullgraph=True, dynamic=False)
    # PyTorch's vectors take the compiler twice as long.
    with torch._inductor.config.patch({'cpp.vec_isa_ok': False, 'compile_threads': 1}):
        by_compiler = results(compiled, attention, tokens)
    for found, expected in zip(by_compiler, results(attend, attention, tokens), strict=True):
        assert (found - expected).abs().max() <= 0.01 * expected.abs().max()
