"""The network of weights is recognised by their names and shapes."""

import json
from pathlib import Path

import pytest
import torch

from ptnt_mm.models import CPVT, TNT
from ptnt_mm.weights.identity import describe_network, identify

SHAPES = json.loads(
    Path(__file__).parents[1].joinpath('data', 'state_dict_shapes.json').read_text()
)


def authors_weights(arch):
    """A state dict with the authors' keys and shapes, without memory for its numbers."""
    shapes = SHAPES[arch]['state_dict']
    return {key: torch.zeros(shape, device='meta') for key, shape in shapes.items()}


@pytest.mark.parametrize('arch', SHAPES)
def test_identify(arch):
    weights = authors_weights(arch)
    assert identify(weights) == ('PyramidTNT', arch, SHAPES[arch]['img_size'])
    assert describe_network(weights) == f'PyramidTNT {arch}, {SHAPES[arch]["img_size"]} px'


def test_identify_another_size_and_another_arch():
    weights = authors_weights('small')
    weights['outer_pos'] = torch.zeros(1, (320 // 8) ** 2, 128)
    assert identify(weights) == ('PyramidTNT', 'small', 320)
    weights['outer_pos'] = torch.zeros(1, 1000, 128)
    weights['stages.1.blocks.0.outer_norm1.weight'] = torch.zeros(100)
    assert identify(weights) == ('PyramidTNT', None, None)


FAMILY = [
    (TNT, dict(arch='small'), 'TNT small, 224 px'),
    (TNT, dict(arch='base', pretrain_img_size=384), 'TNT base, 384 px'),
    (CPVT, dict(arch='tiny'), 'CPVT tiny'),
    (CPVT, dict(arch='small', position='learned'), 'CPVT small, 224 px'),
    (CPVT, dict(arch='base', position='learned', with_cls_token=False), 'CPVT base, 224 px'),
    (CPVT, dict(arch=dict(depth=1, dim=24, heads=2)), 'CPVT of an unknown arch'),
]


@pytest.mark.parametrize(('kind', 'settings', 'name'), FAMILY, ids=[row[2] for row in FAMILY])
def test_identify_a_backbone_of_one_scale(kind, settings, name):
    with torch.device('meta'):
        weights = kind(**settings).state_dict()
    assert describe_network(weights) == name


@pytest.mark.parametrize(
    ('key', 'name'),
    [
        ('layers.0.blocks.0.attn.relative_position_bias_table', 'Swin'),
        ('layer1.0.conv1.weight', 'ResNet'),
        ('cls_token', 'Vision Transformer'),
        ('patch_embed1.proj.weight', 'PVT'),
        ('something.else', 'unknown model with the keys something.else'),
    ],
)
def test_looks_like_other_models(key, name):
    assert name in describe_network({key: torch.zeros(1)})
