"""Backbones describe their maps as in timm."""

from copy import deepcopy

import pytest
import torch

from ptnt_mm.models import CPVT, TNT, PyramidTNT, PyramidTNTClassifier
from ptnt_mm.models.backbone import Backbone

pytestmark = pytest.mark.slow


def build(cls: type[Backbone], **options) -> Backbone:
    with torch.device('meta'):
        return cls(**options)


BACKBONES = {
    'pyramid': (PyramidTNT, dict(arch='tiny', out_indices=(1, 2))),
    'all_stages': (PyramidTNT, dict(arch='ti')),
    'last_stages': (PyramidTNT, dict(arch='ti', out_indices=(-2, -1))),
    'classifier': (PyramidTNTClassifier, dict(arch='tiny')),
    'tnt': (TNT, dict(arch='small', out_indices=(2, -1))),
    'cpvt': (CPVT, dict(arch='tiny', out_indices=(3,))),
}


@pytest.fixture(params=BACKBONES.values(), ids=BACKBONES)
def backbone(request) -> Backbone:
    cls, options = request.param
    return build(cls, **options)


def test_of_two_stages():
    info = build(PyramidTNT, arch='tiny', out_indices=(1, 2)).feature_info
    assert info.channels() == [160, 320] and info.reduction() == [16, 32]
    assert info.module_name() == ['stages.1', 'stages.2']
    assert info[3] == dict(num_chs=320, reduction=64, module='stages.3', index=3)


def test_is_what_the_backbone_declares_and_returns(backbone):
    info = backbone.feature_info
    assert info.channels() == list(backbone.out_channels)
    assert info.reduction() == list(backbone.out_strides)
    for name in info.module_name():
        assert backbone.get_submodule(name) is not None
    if not isinstance(backbone, PyramidTNTClassifier):
        maps = backbone(torch.zeros(1, 3, 128, 192, device='meta'))
        assert [m.shape[1] for m in maps] == info.channels()
        assert [192 // m.shape[3] for m in maps] == info.reduction()


def test_is_what_timm_computes(backbone):
    from timm.models import _features as features

    ours = backbone.feature_info
    theirs = features.FeatureInfo(deepcopy(ours.info), ours.out_indices)
    for method in ('channels', 'reduction', 'module_name'):
        assert getattr(ours, method)() == getattr(theirs, method)()
    assert ours[0] == theirs[0]
