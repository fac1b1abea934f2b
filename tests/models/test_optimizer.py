"""Optimizer groups: MMEngine's rules, few groups, checked keys, rates by depth."""

import copy
import io

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import OptimWrapper, build_optim_wrapper
from repository import ROOT
from torch import nn

from ptnt_mm.models import CPVT, TNT, PyramidTNT, PyramidTNTClassifier
from ptnt_mm.utils.errors import UserError

RATE, DECAY = 1e-3, 0.05
TABLES = {'backbone.outer_pos', 'backbone.inner_pos'}
SCHEDULE = ROOT / 'configs/_base_/schedules/adamw.py'


class Detector(nn.Module):
    """A backbone followed by another module."""

    def __init__(self, backbone: nn.Module):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(4, 2)


@pytest.fixture
def detector(micro_arch: dict) -> Detector:
    return Detector(PyramidTNT(micro_arch, out_norms=True))


def groups_of(model: nn.Module, kind: str, **paramwise) -> list[dict]:
    settings = dict(
        type='OptimWrapper',
        constructor=f'{kind}OptimWrapperConstructor',
        optimizer=dict(type='AdamW', lr=RATE, weight_decay=DECAY),
        paramwise_cfg=paramwise,
    )
    return build_optim_wrapper(model, settings).optimizer.param_groups


def by_name(model: nn.Module, groups: list[dict], setting: str) -> dict[str, float]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {names[id(p)]: group[setting] for group in groups for p in group['params']}


def test_equal_settings_share_a_group(detector: Detector):
    groups = groups_of(detector, 'Checked', flat_decay_mult=0.0)
    assert len(groups) == 3  # decayed, one-dimensional, and the tables with their multiplier
    decays = by_name(detector, groups, 'weight_decay')
    assert decays == {
        name: 0.0 if parameter.dim() == 1 or name in TABLES else DECAY
        for name, parameter in detector.named_parameters()
    }


def test_without_rules_only_tables_are_spared(detector: Detector):
    assert len(groups_of(detector.head, 'Checked')) == 1
    decays = by_name(detector, groups_of(detector, 'Checked'), 'weight_decay')
    assert {name for name, decay in decays.items() if not decay} == TABLES


SINGLE_SCALE = dict(
    tnt=(TNT, dict(depth=2, outer_dim=16, inner_dim=4, outer_heads=2, inner_heads=1, words=16)),
    cpvt=(CPVT, dict(depth=2, dim=16, heads=2)),
)


@pytest.mark.parametrize(
    ('optimizer', 'decay'), [('AdamW', 0.01), (torch.optim.SGD, 0), ('Rprop', None)]
)
def test_the_optimizers_own_weight_decay_is_scaled(
    detector: Detector, optimizer: str | type, decay: float | None
):
    keys = dict(patch_embed=dict(lr_mult=0.1))
    settings = dict(
        type='OptimWrapper',
        constructor='CheckedOptimWrapperConstructor',
        optimizer=dict(type=optimizer, lr=RATE),
        paramwise_cfg=dict(flat_decay_mult=0.0, custom_keys=keys),
    )
    if decay is not None:
        settings['paramwise_cfg']['norm_decay_mult'] = 0.0  # MMEngine refuses it without a decay
    groups = build_optim_wrapper(detector, settings).optimizer.param_groups
    if decay is None:
        assert not any('weight_decay' in group for group in groups)
        return
    decays = by_name(detector, groups, 'weight_decay')
    assert (
        not any(decays[name] for name in TABLES)
        and not decays['backbone.patch_embed.common_conv.0.bias']
    )
    assert decays['head.weight'] == decay


@pytest.mark.parametrize('position', ['learned', 'sinusoidal', 'peg', 'none'])
@pytest.mark.parametrize('kind', SINGLE_SCALE)
def test_tables_are_spared_whatever_the_position(kind: str, position: str):
    cls, arch = SINGLE_SCALE[kind]
    check_spared(Detector(cls(arch, position=position)))


@pytest.mark.parametrize('position', ['learned', 'relative', 'learned_and_relative', 'none'])
def test_relative_tables_are_decayed_as_by_the_authors(micro_arch: dict, position: str):
    decays = check_spared(Detector(PyramidTNT(micro_arch, position=position)))
    relative = [decay for name, decay in decays.items() if name.endswith('relative_pos')]
    assert relative == [DECAY] * 4 * ('relative' in position)


def check_spared(model: nn.Module) -> dict[str, float]:
    """Decays of all parameters; those without are what the papers' code spares."""
    decays = by_name(model, groups_of(model, 'Checked', flat_decay_mult=0.0), 'weight_decay')
    tables = ('outer_pos', 'inner_pos', 'cls_token')
    for name, parameter in model.named_parameters():
        assert (decays[name] == 0.0) == (parameter.dim() == 1 or name.endswith(tables)), name
    return decays


def test_a_custom_key_sets_the_decay_of_a_table(detector: Detector):
    keys = dict(backbone=dict(lr_mult=0.5), outer_pos=dict(lr_mult=0.1, decay_mult=2.0))
    groups = groups_of(detector, 'Checked', custom_keys=keys)
    decays, rates = (by_name(detector, groups, setting) for setting in ('weight_decay', 'lr'))
    assert decays['backbone.outer_pos'] == pytest.approx(2 * DECAY)
    assert decays['backbone.inner_pos'] == 0.0
    assert rates['backbone.inner_pos'] == pytest.approx(0.5 * RATE)
    assert rates['backbone.outer_pos'] == pytest.approx(0.1 * RATE)


def test_groups_are_those_of_mmengine(detector: Detector):
    rules = dict(
        norm_decay_mult=0.0,
        bias_lr_mult=2.0,
        custom_keys={'outer_attn': dict(lr_mult=0.5), 'head': dict(decay_mult=0.1)},
    )
    ours = groups_of(detector, 'Checked', **rules)
    rules['custom_keys'] |= {table: dict(decay_mult=0.0) for table in TABLES}
    theirs = groups_of(detector, 'Default', **rules)
    assert len(ours) < 10 < len(theirs)
    for setting in ('lr', 'weight_decay'):
        assert by_name(detector, ours, setting) == by_name(detector, theirs, setting)


def test_a_custom_key_that_leaves_decay_alone_spares_flat_weights_too(detector: Detector):
    groups = groups_of(
        detector, 'Checked', flat_decay_mult=0.0, custom_keys={'backbone': dict(lr_mult=0.1)}
    )
    decays, rates = (by_name(detector, groups, setting) for setting in ('weight_decay', 'lr'))
    assert decays['backbone.norm0.weight'] == 0.0
    assert decays['backbone.stages.0.blocks.0.outer_attn.q.weight'] == DECAY
    assert rates['backbone.norm0.weight'] == pytest.approx(0.1 * RATE)


def test_frozen_parameters_are_left_out(micro_arch: dict):
    detector = Detector(PyramidTNT(micro_arch, frozen_stages=1))
    rates = by_name(detector, groups_of(detector, 'Checked', flat_decay_mult=0.0), 'lr')
    assert rates.keys() == {n for n, p in detector.named_parameters() if p.requires_grad}


@pytest.mark.parametrize('kind', ['Checked', 'LayerDecay'])
def test_a_key_that_matches_nothing_is_an_error(detector: Detector, kind: str):
    keys = {'outer_pos': dict(decay_mult=0.0), 'absolute_pos_embed': dict(decay_mult=0.0)}
    with pytest.raises(UserError, match="'absolute_pos_embed' matches no parameter name"):
        groups_of(detector, kind, decay_rate=0.9, custom_keys=keys)


def test_rates_fall_towards_the_image(detector: Detector):
    groups = groups_of(detector, 'LayerDecay', decay_rate=0.5, flat_decay_mult=0.0)
    rates = by_name(detector, groups, 'lr')
    # Five blocks in stages of 1, 2, 1, 1: depths 1 to 5; 0 is the stem, 6 what comes after.
    depths = {
        'backbone.patch_embed.common_conv.0.weight': 0,
        'backbone.outer_pos': 0,
        'backbone.inner_pos': 0,
        'backbone.stages.0.relative_pos': 1,
        'backbone.stages.0.blocks.0.outer_norm1.weight': 1,
        'backbone.stages.1.blocks.0.outer_attn.q.weight': 2,
        'backbone.stages.1.blocks.1.outer_attn.q.weight': 3,
        'backbone.stages.1.relative_pos': 2,
        'backbone.stages.3.blocks.0.outer_mlp.fc1.bias': 5,
        'backbone.norm0.weight': 6,
    }
    for name, depth in depths.items():
        assert rates[name] == pytest.approx(RATE * 0.5 ** (6 - depth)), name
    merges = {name: rate for name, rate in rates.items() if '_merges.0.' in name}
    assert set(merges.values()) == {rates['backbone.stages.1.blocks.0.outer_attn.q.weight']}
    assert rates['head.weight'] == RATE
    decays = by_name(detector, groups, 'weight_decay')
    assert decays['backbone.norm0.weight'] == 0.0 and decays['head.weight'] == DECAY


def test_depths_of_the_published_archs_end_at_the_last_block():
    for arch, blocks in dict(tiny=13, small=16).items():
        backbone = PyramidTNT(arch)
        depths = [backbone.get_layer_depth(name) for name, _ in backbone.named_parameters()]
        assert {of for _, of in depths} == {blocks + 2}
        assert {depth for depth, _ in depths} == set(range(blocks + 1))
    assert PyramidTNTClassifier('tiny').get_layer_depth('head.weight') == (14, 15)


@pytest.mark.parametrize('rate', [None, True, 0, -0.5, 1.5, 'much'])
def test_a_rate_that_makes_no_sense_is_an_error(detector: Detector, rate: object):
    with pytest.raises(UserError, match='decay_rate is .*expected a number above 0'):
        groups_of(detector, 'LayerDecay', decay_rate=rate)


def test_a_backbone_without_depths_is_an_error():
    with pytest.raises(UserError, match='Linear does not define the depth of its layers'):
        groups_of(Detector(nn.Linear(4, 4)), 'LayerDecay', decay_rate=0.9)


def schedule_of(model: nn.Module, **options) -> OptimWrapper:
    """The optimizer that the schedules build, with clipped gradients; ``options`` are its own."""
    settings = Config.fromfile(SCHEDULE).optim_wrapper
    settings.optimizer.update(options)
    wanted = dict(settings, clip_grad=dict(max_norm=0.1))
    wanted['paramwise_cfg'] = dict(flat_decay_mult=0.0)
    return build_optim_wrapper(model, wanted)


def train(model: nn.Module, wrapper: OptimWrapper, steps: range) -> None:
    """Steps with random gradients, the same for every model."""
    for step in steps:
        torch.manual_seed(step)
        losses = [(p * torch.randn_like(p)).sum() for p in model.parameters()]
        wrapper.update_params(sum(losses))


def test_the_schedules_optimizer_is_fused_and_computes_the_same(micro_arch: dict):
    fused = Detector(PyramidTNT(micro_arch))
    plain = copy.deepcopy(fused)
    for model, options in ((fused, {}), (plain, dict(fused=False))):
        wrapper = schedule_of(model, lr=RATE, **options)
        train(model, wrapper, range(3))
        assert all(group['fused'] is (model is fused) for group in wrapper.optimizer.param_groups)
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(
            parameter, fused.get_parameter(name), rtol=1e-4, atol=1e-2 * RATE
        )


def test_a_resumed_fused_optimizer_continues_bit_by_bit(micro_arch: dict):
    model = Detector(PyramidTNT(micro_arch))
    wrapper = schedule_of(model)
    train(model, wrapper, range(2))
    file = io.BytesIO()
    torch.save(dict(model=model.state_dict(), optimizer=wrapper.state_dict()), file)
    train(model, wrapper, range(2, 4))

    file.seek(0)
    stored = torch.load(file, weights_only=True)
    resumed = Detector(PyramidTNT(micro_arch))
    resumed.load_state_dict(stored['model'])
    again = schedule_of(resumed)
    again.load_state_dict(stored['optimizer'])
    train(resumed, again, range(2, 4))
    for name, value in model.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
