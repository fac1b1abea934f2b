"""Outputs equal the authors' (``tests/data/golden/README.md``), and the forms equal each other."""

import json
from collections.abc import Callable
from functools import lru_cache

import pytest
import torch
from torch import Tensor

from ptnt_mm.models import PyramidTNTClassifier

from . import golden

CASES = (
    'base_256',
    'medium_256',
    'small_256',
    'small_320x448',
    'small_200x336',
    'small_256_se',
    'tiny_192_se',
    'tiny_192',
    'tiny_320x448',
    'tiny_200x336',
)
ATTENTIONS = ('eager', 'fused')
SHAPES = json.loads((golden.DATA / 'state_dict_shapes.json').read_text())

GOLDEN_TOLERANCE = 1e-4
"""Largest error in spreads (standard deviations) of the map that it belongs to."""

BFLOAT16_TOLERANCE = 0.02
"""Root mean square error under bfloat16 autocast, in spreads; it is 0.005 to 0.014."""

pytestmark = pytest.mark.slow


@lru_cache(maxsize=1)
def weights(arch: str, with_se: bool) -> dict[str, Tensor]:
    with torch.device('meta'):
        return golden.fill(PyramidTNTClassifier(arch, with_se=with_se).state_dict())


def model_for(case: str, attention: str) -> PyramidTNTClassifier:
    arch, with_se = case.split('_')[0], case.endswith('_se')
    with torch.device('meta'):
        model = PyramidTNTClassifier(arch, with_se=with_se, attention=attention)
    model.load_state_dict(weights(arch, with_se), assign=True)
    return model.eval()


def image_for(case: str) -> Tensor:
    height, _, width = case.split('_')[1].partition('x')
    return golden.image(2 if width else 1, int(height), int(width or height))


def sampled(tokens: Tensor, hw: tuple[int, int], steps: int) -> Tensor:
    """Rows and columns (B, C, h', w') of outer tokens, about ``steps`` of each."""
    rows, columns = (max(1, side // steps) for side in hw)
    return tokens.mT.unflatten(2, hw)[:, :, ::rows, ::columns]


def measured(model: PyramidTNTClassifier, image: Tensor) -> dict[str, Tensor]:
    """The golden values of this model."""
    found = {'logits': model(image)}
    model.out_indices = range(4)
    for i, (inner, outer, hw) in enumerate(model.forward_tokens(image)):
        tokens = hw[0] * hw[1]
        words = inner.unflatten(0, (-1, tokens))
        found[f'stage{i}_mean'] = outer.mean(dim=1)
        found[f'stage{i}_std'] = outer.std(dim=1)
        found[f'stage{i}_grid'] = sampled(outer, hw, steps=4 if len(image) == 1 else 3)
        found[f'stage{i}_shape'] = torch.tensor([*outer.mT.shape[:2], *hw])
        found[f'inner{i}_sample'] = words[:, :: max(1, tokens // 8)]
    return found


def largest(errors: Tensor) -> Tensor:
    return errors.abs().max()


def root_mean_square(errors: Tensor) -> Tensor:
    return errors.square().mean().sqrt()


def assert_parity(
    found: dict[str, Tensor],
    expected: dict[str, Tensor],
    tolerance: float,
    size: Callable[[Tensor], Tensor] = largest,
) -> None:
    """Check all expected values; statistics of a map are in units of its spread."""
    for key, value in expected.items():
        level = key.partition('_')[0]
        spread = expected.get(f'{level}_grid', value).double().std()
        assert found[key].shape == value.shape, key
        error = size(found[key].double() - value) / spread
        assert error <= tolerance, f'{key}: {error:.1e} of the spread'


@pytest.mark.parametrize('arch', SHAPES)
def test_parity_state_dict(arch):
    with torch.device('meta'):
        model = PyramidTNTClassifier(arch)
    expected = SHAPES[arch]
    assert {k: list(v.shape) for k, v in model.state_dict().items()} == expected['state_dict']
    assert sum(p.numel() for p in model.parameters()) == expected['params']
    assert model.pretrain_img_size == expected['img_size']


# The published form is tried with two archs only: the others differ in numbers.
@pytest.mark.parametrize(
    ('case', 'attention'),
    [
        (case, attention)
        for case in CASES
        for attention in ATTENTIONS
        if attention == 'fused' or not case.startswith(('base', 'medium'))
    ],
)
@torch.inference_mode()
def test_parity_golden(case, attention):
    found = measured(model_for(case, attention), image_for(case))
    assert_parity(found, golden.numbers(f'pyramid_tnt_{case}_seed0'), GOLDEN_TOLERANCE)


@pytest.mark.parametrize('case', ['tiny_192', 'tiny_200x336'])
@torch.inference_mode()
def test_parity_float64(case):
    """Golden numbers are float32; the two forms of attention must agree more closely."""
    eager, fused = (
        measured(model_for(case, attention).double(), image_for(case).double())
        for attention in ATTENTIONS
    )
    assert_parity(eager, golden.numbers(f'pyramid_tnt_{case}_seed0'), GOLDEN_TOLERANCE)
    assert_parity(fused, eager, tolerance=1e-9)


@pytest.mark.parametrize('attention', ATTENTIONS)
@pytest.mark.parametrize('case', ['small_256', 'tiny_200x336'])
@torch.inference_mode()
def test_parity_bfloat16_autocast(case, attention):
    with torch.autocast('cpu', torch.bfloat16):
        found = measured(model_for(case, attention), image_for(case))
    expected = golden.numbers(f'pyramid_tnt_{case}_seed0')
    assert_parity(found, expected, BFLOAT16_TOLERANCE, root_mean_square)


@torch.inference_mode()
def test_parity_of_a_batch_with_its_images():
    model = model_for('tiny_192', 'fused')
    batch = golden.image(3, 136, 200)
    alone = torch.cat([model(image[None]) for image in batch])
    assert_parity({'logits': model(batch)}, {'logits': alone}, tolerance=1e-5)
