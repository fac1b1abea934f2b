"""torch.compile: one graph, any size, the same numbers."""

import shutil

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend

from ptnt_mm.models import PyramidTNT, TransposedConvNeck

from . import golden


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


@pytest.fixture
def pyramid(build_micro) -> Pyramid:
    torch._dynamo.reset()
    return Pyramid(build_micro(drop_path_rate=0.0)).double().eval()


@pytest.mark.parametrize('attention', ['eager', 'fused'])
def test_static_sizes(build_micro, attention):
    torch._dynamo.reset()
    model = Pyramid(build_micro(attention=attention, drop_path_rate=0.0)).double().eval()
    compiled = torch.compile(model, backend='aot_eager', fullgraph=True, dynamic=False)
    image = golden.image(1, 61, 93).double()
    found, expected = results(compiled, model, image), results(model, model, image)
    torch.testing.assert_close(found, expected)


@pytest.mark.timeout(300)
def test_dynamic_sizes(pyramid):
    """Sizes that are multiples of 64 share a compilation; a remainder may cost another one."""
    counter = CompileCounterWithBackend('aot_eager')
    compiled = torch.compile(pyramid, backend=counter, fullgraph=True, dynamic=True)
    for hw in [(192, 256), (256, 192), (192, 320)]:
        image = golden.image(2, *hw).double()
        found, expected = results(compiled, pyramid, image), results(pyramid, pyramid, image)
        torch.testing.assert_close(found, expected)
    assert counter.frame_count <= 2, 'three sizes are not three compilations'


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which('g++') is None, reason='torch.compile needs a C++ compiler')
def test_generated_code(build_micro):
    """Inductor's own kernels, forward and backward, in single precision."""
    torch._dynamo.reset()
    model = Pyramid(build_micro(drop_path_rate=0.0)).eval()
    compiled = torch.compile(model, fullgraph=True, dynamic=False)
    image = golden.image(1, 61, 93)
    for found, expected in zip(
        results(compiled, model, image), results(model, model, image), strict=True
    ):
        assert (found - expected).abs().max() <= 0.01 * expected.abs().max()
