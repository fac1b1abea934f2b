"""The rows of variants: aliases and published facts."""

import re

import pytest
import torch
from torch import nn

from ptnt_mm.models import CPVT, TNT, PlainClassifier, PyramidTNT, PyramidTNTClassifier
from ptnt_mm.models.backbone import full_names
from ptnt_mm.workbench.config.build import build_by_name
from ptnt_mm.workbench.config.zoo import config_names

WORDS = {'ptnt': PyramidTNT, 'tnt': TNT, 'cpvt': CPVT}
EVERY_ARCH = [(cls, *row) for cls in WORDS.values() for row in cls.archs.items()]


def shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(weight.shape) for name, weight in model.state_dict().items()}


@pytest.mark.parametrize(('cls', 'arch', 'row'), EVERY_ARCH)
def test_an_alias_and_the_row_itself_are_the_same_backbone(cls, arch, row):
    with torch.device('meta'):
        expected = shapes(cls(arch))
        assert shapes(cls(row['alias'])) == shapes(cls(row)) == expected


def test_classifiers_take_aliases():
    with torch.device('meta'):
        assert shapes(PyramidTNTClassifier('ti')) == shapes(PyramidTNTClassifier('tiny'))
        plain = (PlainClassifier(dict(type='CPVT', arch=arch)) for arch in ('ti', 'tiny'))
        assert shapes(next(plain)) == shapes(next(plain))


@pytest.mark.parametrize(
    ('alias', 'name'),
    [('ti', 'tiny'), ('ptnt_m', 'medium'), ('ptnt_tiny', 'ti'), ('tnt_b', 'tnt_base')],
)
def test_classifiers_are_known_by_aliases_and_ptnt_may_be_left_out(alias, name):
    with torch.device('meta'):
        assert shapes(build_by_name(alias)) == shapes(build_by_name(name))


@pytest.mark.parametrize('word', WORDS)
def test_aliases_are_those_in_the_names_of_configs(word):
    archs = WORDS[word].archs
    known = full_names(archs)
    assert len(known) == 2 * len(archs)
    names = filter(None, (re.search(rf'_{word}_([a-z]+)_', name) for name in config_names()))
    sizes = {match[1] for match in names}
    assert sizes and sizes <= {row['alias'] for row in archs.values()}
