"""Weights of any source fit a model, or are refused with a reason."""

import copy
import re

import pytest
import timm
import torch
from detector_runs import ARCH, TNT_ARCH, Detector
from torch import nn

from ptnt_mm.models import CPVT, TNT, PlainClassifier, PyramidTNT, PyramidTNTClassifier
from ptnt_mm.models.position_tables import (
    FlatRelativePosition,
    GridRelativePosition,
    resize_grid,
)
from ptnt_mm.weights.fit import (
    BackboneOfWhole,
    Trunk,
    Whole,
    compare,
    fit,
    split_prefix,
)
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError

CPVT_ARCH = dict(depth=1, dim=24, heads=2)
GROUP_NORM = dict(type='GN', num_groups=1)
BLOCK = 'stages.1.blocks.0.outer_mlp'


def pyramid(**settings):
    return PyramidTNT(ARCH, **settings)


def classifier(num_classes=5):
    return PyramidTNTClassifier(ARCH, num_classes=num_classes)


def detector(backbone=None, **settings):
    model = Detector(**settings)
    model.backbone = backbone or model.backbone
    return model


def prefixed(prefix, weights):
    return {prefix + key: weight for key, weight in weights.items()}


def lacking(part, weights):
    return {key: weight for key, weight in weights.items() if part not in key}


def other(weights):
    return {key: weight + 1 for key, weight in weights.items()}


def with_value(key, value, weights):
    weight = weights[key].clone()
    weight.view(-1)[0] = value
    return weights | {key: weight}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for key, weight in found.items():
        torch.testing.assert_close(weight, expected[key], rtol=0, atol=0)


@pytest.fixture(scope='module')
def weights():
    torch.manual_seed(0)
    return dict(pyramid().state_dict())


HEAD = {'bbox_head.weight': torch.zeros(1), 'neck.0.weight': torch.zeros(1)}
PREFIXES = ('module.', 'backbone.', 'model.', 'module.backbone.', 'model.module.backbone.')
PREFIXES += ('_orig_mod.', 'module._orig_mod.', 'backbone._orig_mod.')
ALONE = 'the whole file'


@pytest.mark.parametrize(
    ('content', 'entry', 'unused'),
    [
        (lambda w: w, ALONE, []),
        (lambda w: dict(state_dict=other(w), state_dict_ema=w, epoch=1), 'state_dict_ema', []),
        (lambda w: dict(state_dict=w, state_dict_ema=None), 'state_dict', []),
        # MMEngine's EMA hook swaps: its state_dict is the average.
        (lambda w: dict(state_dict=w, state_dict_ema=other(w), meta={}), 'state_dict', []),
        (lambda w: dict(state_dict=w, state_dict_ema=other(w), message_hub={}), 'state_dict', []),
        (lambda w: dict(model=other(w), model_ema=w), 'model_ema', []),
        (lambda w: dict(model=w, optimizer={}), 'model', []),
        *((lambda w, p=p: prefixed(p, w) | HEAD, ALONE, list(HEAD)) for p in PREFIXES),
        # The prefix with most of the trunk.
        (
            lambda w: dict(outer_pos=w['outer_pos'] + 1) | prefixed('model.', w),
            ALONE,
            ['outer_pos'],
        ),
        (lambda w: w | {'head.bias': torch.ones(5)}, ALONE, ['head.bias']),
        (lambda w: w | {'x.num_batches_tracked': torch.ones(())}, ALONE, []),
    ],
)
def test_a_trunk_is_found(weights, content, entry, unused):
    stored, ready, report = fit(content(weights), pyramid(), Trunk())
    assert_same(ready, weights)
    assert (stored.entry, report.unused, report.loaded) == (entry, unused, list(weights))
    assert not report.missing and not report.new and not report.resized


@pytest.mark.parametrize('prefix', ['teacher', 'teacher.'])
def test_a_prefix_can_be_given(weights, prefix):
    both = prefixed('teacher.', weights) | prefixed('backbone.', other(weights))
    assert_same(fit(both, pyramid(), Trunk(prefix)).ready, weights)


class Fewer(PyramidTNT):
    """Replaces some weights of the file, see docs/extend.md."""

    pretrained_may_lack = ('inner_pos', 'stages.3', 'stages.2.relative_p')

    def __init__(self):
        super().__init__(ARCH)
        self.inner_pos = nn.Parameter(torch.ones(2, 2))


@pytest.mark.parametrize(
    ('content', 'model', 'new', 'unused'),
    [
        (lambda w: lacking('num_batches', w), pyramid, 'num_batches_tracked', '$'),
        (lambda w: w, lambda: pyramid(out_norms=True), r'norm\d\.(weight|bias)', '$'),
        (
            lambda w: pyramid(out_norms=True).state_dict(),
            lambda: pyramid(out_norms=True),
            '$',
            '$',
        ),
        (
            lambda w: pyramid(norm_cfg=GROUP_NORM).state_dict(),
            lambda: pyramid(norm_cfg=GROUP_NORM),
            '$',
            '$',
        ),
        (lambda w: w, lambda: pyramid(relative_position='none'), '$', r'relative_pos$'),
        (lambda w: w, lambda: pyramid(out_indices=(0, 1)), '$', r'^stages\.[23]\.|_merges\.[12]\.'),
        # A head of a different number of classes.
        (lambda w: classifier(7).state_dict(), classifier, '^head', '^head'),
        # No published file has a PEG.
        (lambda w: w, lambda: pyramid(position='peg'), r'peg\.conv', '_pos$'),
        (lambda w: lacking('stages.3.blocks.0.', w), Fewer, r'inner_pos|^stages\.3', 'inner_pos'),
    ],
)
def test_parts_that_a_file_may_lack(weights, content, model, new, unused):
    report = fit(content(weights), model(), Trunk()).report
    for keys, pattern in ((report.new, new), (report.unused, unused)):
        assert bool(keys) == (pattern != '$') and all(re.search(pattern, key) for key in keys)


class Scaled(GridRelativePosition, nn.Module):
    """A position encoding with an additional weight, as in docs/extend.md."""

    pretrained_may_lack = ('scale',)

    def __init__(self, query_hw, key_hw):
        nn.Module.__init__(self)
        GridRelativePosition.__init__(self, query_hw, key_hw)
        self.scale = nn.Parameter(torch.ones(1))


def test_a_part_may_bring_weights_that_the_file_lacks(weights, add_relative_position, monkeypatch):
    add_relative_position('scaled', Scaled)
    model = pyramid(relative_position='scaled', pretrain_img_size=128)
    report = fit(weights, model, Trunk()).report
    assert report.new == [f'stages.{i}.relative_position.scale' for i in range(4)]
    assert len(report.resized) == 5
    monkeypatch.setattr(Scaled, 'pretrained_may_lack', ())
    with pytest.raises(CheckpointError, match='pretrained_may_lack') as error:
        fit(weights, model, Trunk())
    assert 'stages.0.relative_position.scale' in str(error.value)


def test_position_tables_of_another_pretraining_size(weights):
    before = {key: weight.clone() for key, weight in weights.items()}
    model = pyramid(pretrain_img_size=128)
    own = copy.deepcopy(model.state_dict())
    _, ready, report = fit(weights, model, Trunk())
    assert_same(weights, before)
    assert_same(model.state_dict(), own)
    torch.testing.assert_close(
        ready['outer_pos'], resize_grid(weights['outer_pos'], (8, 8), (16, 16))
    )
    # Stage 2: queries on every 16th pixel, keys averaged by 2.
    grid = GridRelativePosition((4, 4), (2, 2))
    expected = grid.between(weights['stages.1.relative_pos'], (8, 8), (4, 4)).bias()
    torch.testing.assert_close(ready['stages.1.relative_pos'], expected)
    assert report.resized['stages.1.relative_pos'] == ((1, 1, 16, 4), (1, 1, 64, 16))
    assert len(report.resized) == 5 and not report.mismatched


def test_a_table_is_resized_like_an_image(weights):
    ready = fit(weights, pyramid(pretrain_img_size=192), Trunk()).ready
    image = weights['outer_pos'].reshape(1, 8, 8, 8).permute(0, 3, 1, 2)
    image = nn.functional.interpolate(image, size=(24, 24), mode='bicubic', align_corners=False)
    torch.testing.assert_close(ready['outer_pos'], image.flatten(2).transpose(1, 2))


def test_flat_tables_are_converted_by_the_flat_rule(weights):
    """A model of another pretraining size must have the bias that the file's model computes."""
    model = pyramid(relative_position='flat', pretrain_img_size=128)
    flat = FlatRelativePosition((4, 4), (2, 2))
    expected = flat.between(weights['stages.1.relative_pos'], (8, 8), (4, 4)).bias()
    ready = fit(weights, model, Trunk()).ready
    torch.testing.assert_close(ready['stages.1.relative_pos'], expected)


def test_any_module_may_be_a_trunk():
    module = nn.ModuleDict({'stages': nn.Linear(2, 2)})
    weights = nn.ModuleDict({'stages': nn.Linear(2, 2)}).state_dict()
    assert_same(fit({'model': prefixed('model.', weights)}, module, Trunk()).ready, weights)


def test_half_precision_tables_are_resized():
    half = pyramid().half().state_dict()
    ready = fit(half, pyramid(pretrain_img_size=128), Trunk()).ready
    expected = resize_grid(half['outer_pos'].float(), (8, 8), (16, 16))
    torch.testing.assert_close(ready['outer_pos'], expected)


@pytest.mark.parametrize(
    'content',
    [
        lambda w: w,
        lambda w: dict(state_dict=w, meta={}),
        lambda w: dict(state_dict=w, state_dict_ema=other(w), model=other(w)),
        lambda w: prefixed('module.', w),
        lambda w: prefixed('module._orig_mod.', w),
        lambda w: lacking('head', w) | {'module.' + k: w for k, w in w.items() if 'head' in k},
    ],
)
@pytest.mark.parametrize('scope', [Whole(), BackboneOfWhole()])
def test_a_whole_model_is_found(content, scope):
    weights = detector().state_dict()
    stored, ready, _ = fit(content(weights), detector(), scope)
    assert_same(stored.weights, weights)
    assert_same(ready, weights if type(scope) is Whole else lacking('head', weights))


def test_a_whole_model_may_lack_counters():
    weights = lacking('num_batches_tracked', detector().state_dict())
    report = fit(weights, detector(), Whole()).report
    assert report.new and all('num_batches_tracked' in key for key in report.new)


def test_a_published_classifier_gets_the_names_of_mmpretrain():
    settings = dict(type='mmengine.TNT', arch=TNT_ARCH)
    weights = PlainClassifier(settings, num_classes=5).state_dict()
    theirs = {k.removeprefix('backbone.').replace('head.fc', 'head'): w for k, w in weights.items()}
    content = dict(state_dict=other(theirs), state_dict_ema=prefixed('module.', theirs))
    model = PlainClassifier(settings, num_classes=5)
    assert_same(fit(content, model, Whole()).ready, weights)


def test_fine_tuning_needs_only_the_backbone():
    weights = with_value('bbox_head.bias', torch.nan, detector(num_classes=7).state_dict())
    model = detector(pretrain_img_size=128, extra=True)
    stored, ready, report = fit(weights, model, BackboneOfWhole())
    assert all(key.startswith('backbone.') for key in ready) and len(report.resized) == 5
    assert report.unused == ['bbox_head.weight', 'bbox_head.bias'] and not report.new
    assert stored.weights.keys() == weights.keys()
    expected = fit(weights, model.backbone, Trunk()).ready
    assert_same(ready, prefixed('backbone.', expected))


RESNET = {'layer1.0.conv1.weight': torch.zeros(1)}
WIDE = dict(ARCH, outer_dims=(16, 16, 16, 16))
NAN, INFINITY = float('nan'), float('inf')

# A model, the scope, the content of a file with the model's weights `w` changed, and what an error
# names.
MISFITS = [
    (pyramid, Trunk(), lambda w: lacking(BLOCK, w), ['4', f'{BLOCK}.fc1.weight', 'PyramidTNT']),
    (pyramid, Trunk(), lambda w: lacking(BLOCK, w), ['64 px', 'pretrained_may_lack']),
    (pyramid, Trunk(), lambda w: RESNET, ['a ResNet', 'PyramidTNT', 'outer_pos', 'more']),
    (
        pyramid,
        Trunk(),
        lambda w: PyramidTNT('tiny').state_dict(),
        ['PyramidTNT tiny, 192 px', 'outer_pos is (1, 576, 80), the model has (1, 64, 8)'],
    ),
    (pyramid, Trunk(), lambda w: TNT(TNT_ARCH).state_dict(), ['like TNT', 'is PyramidTNT']),
    (pyramid, Trunk(), lambda w: w | dict(outer_pos=torch.zeros(1, 63, 8)), ['(1, 63, 8)']),
    (pyramid, Trunk(), lambda w: w | dict(outer_pos=torch.zeros(1, 64, 9)), ['(1, 64, 9)']),
    (pyramid, Trunk(), lambda w: w | dict(outer_pos=torch.zeros(64, 8)), ['(64, 8)']),
    (
        lambda: pyramid(norm_cfg=GROUP_NORM),
        Trunk(),
        lambda w: pyramid().state_dict(),
        ['patch_embed.common_conv.1', "norm_cfg=dict(type='BN')"],
    ),
    (lambda: CPVT(CPVT_ARCH), Trunk(), lambda w: lacking('peg', w), ['blocks.0.peg.conv.weight']),
    (Fewer, Trunk(), lambda w: lacking('stages.2.relative_pos', w), ['1', 'stages.2.relative_pos']),
    (pyramid, Trunk('student.'), lambda w: w, ['184', 'outer_pos']),
    *(
        (pyramid, scope, lambda w: {'epoch': 3, 'optimizer': {}}, ['epoch', 'optimizer'])
        for scope in (Trunk(), Whole(), BackboneOfWhole())
    ),
    *(
        (pyramid, Trunk(), lambda w, v=value: dict(model=v, state_dict=v), ['state_dict_ema'])
        for value in ('text', 3, [1], None, {})
    ),
    *(
        (pyramid, Trunk(), lambda w, v=value: with_value('inner_pos', v, w), ['1', 'inner_pos'])
        for value in (NAN, INFINITY)
    ),
    (
        lambda: detector(num_classes=5),
        Whole(),
        lambda w: detector().state_dict(),
        ['bbox_head.weight is (2, 8), the model has (5, 8)', 'num_classes'],
    ),
    (
        lambda: detector(pretrain_img_size=128),
        Whole(),
        lambda w: detector().state_dict(),
        ['backbone.outer_pos is (1, 64, 8)', 'pretrain_img_size=64'],
    ),
    (
        lambda: detector(arch='tiny'),
        Whole(),
        lambda w: detector().state_dict(),
        ['of an unknown arch, 64 px', 'PyramidTNT tiny', 'model.backbone'],
    ),
    (lambda: detector(extra=True), Whole(), lambda w: lacking('neck', w), ['2', 'neck.weight']),
    (detector, Whole(), lambda w: RESNET, ['a ResNet', 'Use a checkpoint of this model']),
    (detector, Whole(), lambda w: dict(model=w), ['state_dict']),
    (detector, Whole(), lambda w: with_value('bbox_head.bias', NAN, w), ['1', 'bbox_head.bias']),
    (detector, BackboneOfWhole(), lambda w: lacking(BLOCK, w), ['4', f'backbone.{BLOCK}']),
    (
        detector,
        BackboneOfWhole(),
        lambda w: with_value('backbone.inner_pos', NAN, w),
        ['1', 'backbone.inner_pos'],
    ),
    (
        lambda: detector(nn.Conv2d(3, 8, 1)),
        BackboneOfWhole(),
        lambda w: detector().state_dict(),
        ['PyramidTNT of an unknown arch, 64 px'],
    ),
    # A backbone alone: the mistake is the option.
    *(
        (
            lambda b=backbone: detector(b()),
            BackboneOfWhole(),
            lambda w, b=backbone: b().state_dict(),
            ['pretrained', 'model.backbone.init_cfg'],
        )
        for backbone in (pyramid, lambda: TNT(TNT_ARCH))
    ),
]


@pytest.mark.parametrize(('model', 'scope', 'content', 'named'), MISFITS)
def test_what_does_not_fit_is_named(model, scope, content, named):
    model = model()
    with pytest.raises(CheckpointError) as error:
        fit(content(dict(model.state_dict())), model, scope, 'misfit.pth')
    for word in ['misfit.pth', *named]:
        assert word in str(error.value)


def test_a_missing_table_has_no_size_to_advise():
    weights = lacking('outer_pos', detector().state_dict())
    with pytest.raises(CheckpointError, match=r'backbone\.outer_pos') as error:
        fit(weights, detector(), Whole())
    assert 'None' not in str(error.value)


def renamed(blocks: int) -> list[str]:
    """The names that a model gets for some weights of efficientnet_pytorch."""
    keys = ['_conv_stem.weight', *(f'_blocks.{i}._depthwise_conv.weight' for i in range(blocks))]
    found = compare(dict.fromkeys(keys, torch.ones(1)), nn.Identity(), Trunk()).stored.weights
    assert len(found) == len(keys)
    return [*found]


def test_an_efficientnet_that_was_cut_gets_timms_names():
    assert 'blocks.4.1.conv_dw.weight' in renamed(11)
    assert renamed(0) == ['conv_stem.weight']


def test_the_wrapper_of_names_of_another_source_is_removed():
    weights = {'module._conv_stem.weight': torch.ones(1), 'module._fc.bias': torch.ones(1)}
    found, others = split_prefix(weights)
    assert set(found) == {'_conv_stem.weight', '_fc.bias'} and not others


@pytest.mark.parametrize('name', [f'lite{i}' for i in range(5)] + [f'b{i}' for i in range(8)])
def test_efficientnets_of_every_size_get_timms_names(name: str):
    with torch.device('meta'):
        own = timm.create_model(f'tf_efficientnet_{name}').state_dict()
    blocks = len({tuple(key.split('.')[1:3]) for key in own if key.startswith('blocks.')})
    assert {*renamed(blocks)} <= own.keys()
