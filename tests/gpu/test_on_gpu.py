"""Paths that only a GPU takes: `pytest -m gpu`.

PTNT_GPU=cpu runs on a CPU what can run there, to try the tests themselves.
"""

import os
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from ptnt_mm.models import CPVT, TNT, PyramidTNT
from ptnt_mm.models.blocks import NarrowNorm
from ptnt_mm.models.kernels import forms

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

DEVICE = os.environ.get('PTNT_GPU', 'cuda')
ON_CUDA = DEVICE.startswith('cuda')
if ON_CUDA and not torch.cuda.is_available():
    pytest.skip('there is no GPU', allow_module_level=True)

SIZES = [(192, 256), (200, 333)]
BUILDS = {
    'pyramid': lambda **options: PyramidTNT('tiny', **options),
    'peg': lambda **options: PyramidTNT('tiny', position='peg', **options),
    'tnt': lambda **options: TNT('small', **options),
    'cpvt': lambda **options: CPVT('tiny', **options),
}


@pytest.fixture(autouse=True)
def _full_precision() -> Iterator[None]:
    """Products of float32 without TF32, which has 10 bits."""
    old = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = old


def images(size: tuple[int, int], batch: int = 2) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(batch, 3, *size)


def step(model: nn.Module, image: Tensor) -> list[Tensor]:
    """Outputs and the gradients of all parameters."""
    outputs = model(image)
    model.zero_grad(set_to_none=True)
    sum(output.float().square().mean() for output in outputs).backward()
    return [*(output.detach() for output in outputs), *(p.grad for p in model.parameters())]


def results(model: nn.Module, image: Tensor) -> list[Tensor]:
    """The same on the CPU in float32."""
    return [tensor.float().cpu() for tensor in step(model, image)]


def assert_near(found: list[Tensor], expected: list[Tensor], most: float) -> None:
    """Compare by the largest difference, relative to each tensor's largest number.

    Some gradients are zero but for rounding: those of convolutions' biases before a BatchNorm.
    """
    rounding = 0.1 * max(tensor.abs().max() for tensor in expected)
    for one, other in zip(found, expected, strict=True):
        assert (one - other).abs().max() <= most * max(other.abs().max(), rounding)


def model_of(name: str, **options) -> nn.Module:
    torch.manual_seed(0)
    return BUILDS[name](drop_path_rate=0.0, **options)


@pytest.mark.parametrize('size', SIZES)
@pytest.mark.parametrize('name', BUILDS)
def test_a_gpu_agrees_with_a_cpu(name, size):
    model, image = model_of(name), images(size)
    expected = results(model, image)
    assert_near(results(model.to(DEVICE), image.to(DEVICE)), expected, 1e-3)


@pytest.mark.parametrize('size', SIZES)
def test_the_fused_form_agrees_with_the_published_one(size):
    image = images(size).to(DEVICE)
    fused, eager = (
        results(model_of('pyramid', attention=form).to(DEVICE), image)
        for form in ('fused', 'eager')
    )
    assert_near(fused, eager, 1e-3)


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
@pytest.mark.parametrize('name', BUILDS)
def test_lower_precision_is_near(name, dtype):
    model, image = model_of(name).to(DEVICE).eval(), images((192, 256)).to(DEVICE)
    with torch.no_grad():
        expected = model(image)
        with torch.autocast(torch.device(DEVICE).type, dtype):
            found = model(image)
    for one, other in zip(found, expected, strict=True):
        assert (one.float() - other).abs().mean() <= 0.03 * other.abs().mean()


@pytest.mark.parametrize('narrow', [True, False])
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float32])
def test_values_of_both_widths(monkeypatch, narrow, dtype):
    """Padded or not, by whichever kernel takes them."""
    monkeypatch.setattr(forms, '_takes_narrow_values', lambda *arguments: narrow)
    image = images((192, 256)).to(DEVICE)
    expected = results(model_of('pyramid', attention='eager').to(DEVICE), image)
    with torch.autocast(torch.device(DEVICE).type, dtype, enabled=dtype != torch.float32):
        found = results(model_of('pyramid').to(DEVICE), image)
    assert_near(found[:4], expected[:4], 1e-3 if dtype == torch.float32 else 0.1)


@pytest.mark.parametrize('channels', [5, 8, 16, 32])
def test_narrow_norms(channels):
    norm, tokens = NarrowNorm(channels).to(DEVICE), torch.randn(700, channels, device=DEVICE)
    expected = nn.LayerNorm.forward(norm, tokens)
    torch.testing.assert_close(norm(tokens), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not ON_CUDA, reason='CPUs do not wait for themselves')
@pytest.mark.parametrize('name', BUILDS)
def test_nothing_waits_for_the_gpu(name):
    model, image = model_of(name).to(DEVICE), images((192, 256)).to(DEVICE)
    with torch.autocast('cuda', torch.bfloat16):
        model(image)
        torch.cuda.set_sync_debug_mode('error')
        try:
            sum(output.float().mean() for output in model(image)).backward()
        finally:
            torch.cuda.set_sync_debug_mode('default')


def test_operators_of_mmcv():
    """NMS, RoIAlign, deformable convolution and focal loss agree with those of the CPU."""
    ops = pytest.importorskip('mmcv.ops')
    torch.manual_seed(0)
    corners = torch.rand(500, 2) * 200
    boxes = torch.cat([corners, corners + 10 + torch.rand(500, 2) * 40], 1)
    scores, maps = torch.rand(500), torch.randn(2, 8, 40, 50)
    rois = torch.cat([torch.arange(500)[:, None] % 2, boxes], 1).float()
    offset, weight = torch.randn(2, 18, 40, 50), torch.randn(4, 8, 3, 3)
    for call, inputs in (
        (lambda b, s: ops.nms(b, s, 0.5)[0], (boxes, scores)),
        (lambda m, r: ops.roi_align(m, r, (7, 7), 0.25, 0, 'avg', True), (maps, rois)),
        (lambda m, o, w: ops.deform_conv2d(m, o, w, 1, 1), (maps, offset, weight)),
        (
            lambda x, t: ops.sigmoid_focal_loss(x, t, 2.0, 0.25, None, 'none'),
            (torch.randn(50, 6), torch.randint(0, 6, (50,))),
        ),
    ):
        expected, found = call(*inputs), call(*(tensor.to(DEVICE) for tensor in inputs))
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-3, atol=1e-3)
