"""The fast path of a whole backbone compared with the published one, and its possible errors."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from micro import SHALLOW_ARCH
from torch import Tensor

from ptnt_mm.models import PyramidTNT
from ptnt_mm.models.kernels import forms

from . import golden

pytestmark = pytest.mark.slow

SIZES = [(192, 192), (61, 93), (512, 64), (8, 8), (9, 200)]


@pytest.fixture(autouse=True)
def _no_image_is_small(monkeypatch):
    """The form for detection sizes: small images would use the published one."""
    monkeypatch.setattr(forms, 'FEW_LOGITS', 0)


def pair(arch: str | dict, **options) -> tuple[PyramidTNT, PyramidTNT]:
    """The published form and the fast one, with the same golden weights."""
    eager, fused = (
        PyramidTNT(arch, attention=attention, drop_path_rate=0.0, **options)
        for attention in ('eager', 'fused')
    )
    fused.load_state_dict(golden.filled(eager).state_dict())
    return eager, fused


def gradients(model: PyramidTNT, image: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Outputs, and gradients of all parameters; the batch norms stay as they are."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.eval()
    outputs = model(image)
    loss = sum((o * torch.linspace(-1, 1, o.numel()).view(o.shape)).sum() for o in outputs)
    return list(outputs), list(torch.autograd.grad(loss, list(model.parameters())))


def furthest(found: list[Tensor], expected: list[Tensor]) -> float:
    """The largest difference, in units of the expected tensor's spread."""
    return max(
        ((a - b).abs().max() / b.std().clamp(min=1e-12)).item()
        for a, b in zip(found, expected, strict=True)
        if b.numel() > 1
    )


def test_double_precision():
    """The other archs differ in numbers only."""
    eager, fused = (model.double() for model in pair('tiny'))
    image = golden.image(1, 69, 93).double()
    for found, expected in zip(gradients(fused, image), gradients(eager, image), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(('height', 'width'), SIZES)
@torch.no_grad()
def test_outputs_in_single_precision(height, width):
    eager, fused = (model.eval() for model in pair('tiny'))
    image = golden.image(1, height, width)
    assert furthest(fused(image), eager(image)) < 1e-5


def test_a_quarter_of_the_area_of_detection(micro_arch):
    """Attention in slices of one head's queries, and of several heads; one block has no words."""
    tiny = {key: PyramidTNT.archs['tiny'][key] for key in micro_arch}
    eager, fused = pair(dict(tiny, depths=(1, 2, 1, 1)))
    image = golden.image(1, 400, 672)
    (outputs, grads), (expected, expected_grads) = gradients(fused, image), gradients(eager, image)
    assert furthest(outputs, expected) < 1e-5
    assert furthest(grads, expected_grads) < 2e-3


def test_attention_dropout_has_the_same_statistics(build_micro):
    """Over 600 draws a mean's standard error is 4 % of the spread, and a spread's 3 %."""
    image = golden.image(1, 64, 64).expand(600, -1, -1, -1)
    eager, fused = (
        build_micro(attention=attention, attn_drop_rate=0.3, drop_path_rate=0.0, norm_eval=True)
        for attention in ('eager', 'fused')
    )
    for a, b in zip(eager(image), fused(image), strict=True):
        spread = a.std(dim=0)
        assert spread.mean() > 1e-3
        assert ((a.mean(dim=0) - b.mean(dim=0)).abs() / spread).mean() < 0.15
        assert (b.std(dim=0).mean() / spread.mean()).item() == pytest.approx(1, abs=0.1)


@torch.no_grad()
def test_eight_threads_with_one_model(build_micro):
    """Each with an image of a different size."""
    model = build_micro().eval()
    images = [golden.image(1, 40 + 8 * i, 104 - 8 * i) for i in range(8)]
    expected = [model(image) for image in images]

    def evaluate(i: int) -> list[tuple[Tensor, ...]]:
        with torch.no_grad():
            return [model(images[i]) for _ in range(10)]

    with ThreadPoolExecutor(8) as pool:
        for i, found in enumerate(pool.map(evaluate, range(8))):
            for outputs in found:
                torch.testing.assert_close(outputs, expected[i])


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_lower_precisions_stay_finite(dtype):
    """Logits and softmax at the size of detection, forward, with a block in each stage."""
    model = golden.filled(PyramidTNT(SHALLOW_ARCH)).eval()
    with torch.no_grad(), torch.autocast('cpu', dtype=dtype):
        outputs = model(golden.image(1, 800, 1333))
    assert all(output.isfinite().all() for output in outputs)


@pytest.mark.parametrize(
    ('dtype', 'hw'), [(torch.bfloat16, (400, 667)), (torch.float16, (200, 334))]
)
def test_gradients_of_lower_precisions_stay_finite(dtype, hw):
    """A training step at a half or a quarter of the sides of detection; the smallest arch."""
    model = golden.filled(PyramidTNT('tiny')).train()
    with torch.autocast('cpu', dtype=dtype):
        outputs = model(golden.image(1, *hw))
    sum(output.float().mean() for output in outputs).backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
