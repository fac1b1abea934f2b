"""The networks as models of timm."""

from pathlib import Path

import pytest
import timm
import torch
from torch import nn

import ptnt_mm.timm as registered
from ptnt_mm.models import CPVT, PlainClassifier, PyramidTNT, PyramidTNTClassifier
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.published import Published
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError

NAMES = [f'pyramid_tnt_{row["alias"]}' for row in PyramidTNT.archs.values()]
NAMES += [f'{name}_fpn' for name in NAMES]
NAMES += [f'cpvt_{row["alias"]}' for row in CPVT.archs.values()]
SMALL = ['pyramid_tnt_ti', 'pyramid_tnt_ti_fpn', 'cpvt_ti']


def image(*size: int, channels: int = 3) -> torch.Tensor:
    return torch.randn(1, channels, *size, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize('name', NAMES)
def test_every_variant_is_registered(name: str):
    assert timm.is_model(name)
    with torch.device('meta'):
        model = timm.create_model(name)
    cfg = model.pretrained_cfg
    assert model.in_chans == cfg['input_size'][0] and model.get_classifier().out_features == 1000
    assert isinstance(model.get_submodule(cfg['first_conv']), nn.Conv2d)


def test_timms_own_networks_stay():
    assert timm.create_model('tnt_s_patch16_224', depth=1).__class__.__module__.startswith('timm.')
    assert registered.PyramidTNT.__module__ == 'ptnt_mm.timm'


def test_logits_are_those_of_our_classifiers():
    torch.manual_seed(0)
    ours = PyramidTNTClassifier('tiny').eval()
    model = timm.create_model('pyramid_tnt_ti').eval()
    model.load_state_dict(ours.state_dict())  # the same names
    with torch.no_grad():
        torch.testing.assert_close(model(image(64, 96)), ours(image(64, 96)))
    backbone = CPVT('tiny')
    plain = PlainClassifier(dict(type='CPVT', arch='tiny')).eval()
    plain.backbone.load_state_dict(backbone.state_dict())
    other = timm.create_model('cpvt_ti').eval()
    head = {f'head.{key}': value for key, value in plain.head.fc.state_dict().items()}
    other.load_state_dict(backbone.state_dict() | head)
    with torch.no_grad():
        torch.testing.assert_close(other(image(64, 96)), plain(image(64, 96)))


@pytest.mark.parametrize('name', SMALL)
def test_widths_and_strides_are_those_of_our_backbones(name: str):
    model = timm.create_model(name)
    assert model.out_channels[-1] == model.num_features
    assert model.out_strides[-1] == model.feature_info[-1]['reduction']


@pytest.mark.parametrize('name', SMALL)
@pytest.mark.parametrize('out_indices', [(0, 1), (1, -1)])
def test_features_only(name: str, out_indices: tuple[int, int]):
    model = timm.create_model(name, features_only=True, out_indices=out_indices).eval()
    with torch.no_grad():
        maps = model(image(70, 128))
    for level, channels, stride in zip(
        maps, model.feature_info.channels(), model.feature_info.reduction(), strict=True
    ):
        assert level.shape == (1, channels, -(-70 // stride), -(-128 // stride))


@pytest.mark.parametrize('out_indices', [(0, 1, 2, 3), (1, 2)])
def test_a_neck_halves_the_strides(out_indices: tuple[int, ...]):
    model = timm.create_model('pyramid_tnt_ti_fpn', features_only=True, out_indices=out_indices)
    strides = [(4, 8, 16, 32)[index] for index in out_indices]
    assert model.feature_info.reduction() == strides
    maps = model(image(70, 128))
    for level, stride in zip(maps, strides, strict=True):
        assert level.is_contiguous() and level.shape[3] == 128 // stride


def test_a_neck_is_new_unless_a_file_has_it(tmp_path: Path):
    plain, own = timm.create_model('pyramid_tnt_ti'), timm.create_model('pyramid_tnt_ti_fpn')
    for source in (plain, own):
        torch.save(source.state_dict(), tmp_path / 'weights.pth')
        loaded = timm.create_model(
            'pyramid_tnt_ti_fpn',
            pretrained=True,
            pretrained_cfg_overlay=dict(file=str(tmp_path / 'weights.pth')),
        ).state_dict()
        assert all(loaded[key].equal(weight) for key, weight in source.state_dict().items())
    first = 'neck.upsamplers.0.0.weight'
    assert not timm.create_model('pyramid_tnt_ti_fpn').state_dict()[first].equal(loaded[first])


@pytest.mark.parametrize('size', [None, 256, (128, 128)])
def test_a_local_file_is_loaded(tmp_path: Path, size: int | tuple[int, int] | None):
    torch.manual_seed(0)
    source = PyramidTNTClassifier('tiny')
    file = tmp_path / 'ptnt_ti.pth.tar'
    torch.save(dict(state_dict_ema=source.state_dict()), file)
    options = {} if size is None else dict(img_size=size)
    model = timm.create_model(
        'pyramid_tnt_ti',
        pretrained=True,
        pretrained_cfg_overlay=dict(file=str(file)),
        num_classes=5,
        in_chans=1,
        **options,
    ).eval()
    assert model.stages[3].relative_pos.isfinite().all() and model.norm.weight.equal(
        source.norm.weight
    )
    assert (
        model.stages[1]
        .blocks[0]
        .outer_attn.q.weight.equal(source.stages[1].blocks[0].outer_attn.q.weight)
    )
    with torch.no_grad():
        assert model(image(64, 64, channels=1)).shape == (1, 5)


@pytest.mark.parametrize('in_chans', [1, 4])
def test_a_file_of_as_many_channels_is_loaded_unchanged(tmp_path: Path, in_chans: int):
    source = timm.create_model('pyramid_tnt_ti', in_chans=in_chans, num_classes=5)
    torch.save(source.state_dict(), tmp_path / 'file.pth')
    model = timm.create_model(
        'pyramid_tnt_ti',
        pretrained=True,
        pretrained_cfg_overlay=dict(file=str(tmp_path / 'file.pth'), num_classes=5),
        in_chans=in_chans,
        num_classes=5,
    )
    assert all(weight.equal(source.state_dict()[k]) for k, weight in model.state_dict().items())


@pytest.fixture(scope='module')
def unfit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each kind of file that does not fit."""
    folder = tmp_path_factory.mktemp('unfit')
    weights = PyramidTNTClassifier('tiny').state_dict()
    query = next(key for key in weights if key.endswith('q.weight'))
    files = dict(
        part={key: weight for key, weight in weights.items() if not key.startswith('stages.2')},
        other=timm.create_model('resnet18').state_dict(),
        nan=weights | {query: weights[query] * float('nan')},
    )
    for kind, file in files.items():
        (folder / kind).mkdir()
        torch.save(file, folder / kind / 'file.pth')
    return folder


@pytest.mark.parametrize(
    ('kind', 'message'),
    [
        ('part', r'file.pth does not fit the model PyramidTNT: it lacks 54 weights: stages.2.'),
        ('other', 'lacks all 316 weights'),
        ('nan', '1 weights contain NaN or infinity: stages.0'),
    ],
)
@pytest.mark.parametrize(
    'options',
    [dict(num_classes=5), dict(features_only=True), dict(num_classes=5, in_chans=4)],
    ids=str,
)
def test_a_file_that_does_not_fit_is_refused(unfit: Path, kind: str, message: str, options: dict):
    """timm warns, whatever the file."""
    with pytest.raises(CheckpointError, match=message):
        timm.create_model(
            'pyramid_tnt_ti',
            pretrained=True,
            pretrained_cfg_overlay=dict(file=str(unfit / kind / 'file.pth')),
            **options,
        )


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('pyramid_tnt_s', r'pan.baidu.com/\S+ in a browser .password v5w5.*overlay=dict.file'),
        ('pyramid_tnt_s_fpn', r'pan.baidu.com/\S+ in a browser .password v5w5.*=dict.file'),
        ('cpvt_ti', 'no weights of cpvt_ti were published'),
        ('cpvt_b', 'no weights of cpvt_b were published'),
    ],
)
def test_weights_that_timm_cannot_download_have_a_source(name: str, message: str):
    with pytest.raises(UserError, match=message):
        timm.create_model(name, pretrained=True)


def test_weights_with_an_address_are_not_downloaded_by_timm(publish):
    publish('CPVT tiny', Published('cpvt_ti', 73.4, url='https://example.org/a.pth'))
    with pytest.raises(UserError, match='^timm cannot download .* `ptnt weights` has .*=dict.file'):
        timm.create_model('cpvt_ti', pretrained=True)


def test_another_size_must_be_square():
    with pytest.raises(ValueError, match='128, 192'):
        timm.create_model('pyramid_tnt_ti', img_size=(128, 192))


@pytest.mark.parametrize('name', SMALL)
def test_checkpointing_changes_no_gradient(name: str):
    found = []
    for enable in (False, True):
        torch.manual_seed(0)
        model = timm.create_model(name).train()
        model.set_grad_checkpointing(enable)
        model(torch.ones(2, 3, 64, 64)).pow(2).mean().backward()
        found.append([parameter.grad for parameter in model.parameters()])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize('name', SMALL)
@pytest.mark.parametrize('coarse', [False, True])
def test_layers_are_in_order(name: str, coarse: bool):
    with torch.device('meta'):
        model = timm.create_model(name)
    depth = model.group_matcher(coarse)
    depths = {key: depth(key) for key, _ in model.named_parameters()}
    assert depths['outer_pos' if 'pyramid' in name else 'cls_token'] == 0
    assert depths['head.weight'] == depths['norm.weight'] == max(depths.values())
    if 'fpn' in name:
        assert depths['neck.upsamplers.0.0.weight'] == depths['norm.weight']
    if 'pyramid' in name:
        assert depths['word_merges.0.norm.weight'] == depths['stages.1.blocks.0.outer_norm1.weight']


@pytest.mark.parametrize('pool', ['max', 'token'])
def test_an_unknown_pooling_is_named(pool: str):
    with pytest.raises(ValueError, match=pool):
        timm.create_model('pyramid_tnt_ti', global_pool=pool)


def test_norms_of_other_widths_are_refused():
    model = timm.create_model('pyramid_tnt_ti').eval()
    with pytest.raises(ValueError, match='160'):
        model.forward_intermediates(image(64, 64), indices=[1], norm=True)


@pytest.mark.parametrize('name', ['pyramid_tnt_ti', 'pyramid_tnt_ti_fpn', 'cpvt_ti'])
def test_features_come_in_one_way(name: str):
    """timm's hooks would return what a module in between computes, such as words."""
    with pytest.raises(UserError, match="feature_cls='hook': .* has only 'getter'"):
        timm.create_model(name, features_only=True, feature_cls='hook')
