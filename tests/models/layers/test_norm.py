import pytest
from torch import nn

from ptnt_mm.models.layers.norm import build_norm, is_batch_norm


@pytest.mark.parametrize(('name', 'cls'), [('BN', nn.BatchNorm2d), ('SyncBN', nn.SyncBatchNorm)])
def test_types(name, cls):
    norm = build_norm(dict(type=name), 6)
    assert type(norm) is cls
    assert norm.num_features == 6
    assert norm.eps == 1e-5
    assert is_batch_norm(norm)


def test_group_norm():
    norm = build_norm(dict(type='GN', num_groups=2, requires_grad=False), 6)
    assert (type(norm), norm.num_groups, norm.num_channels) == (nn.GroupNorm, 2, 6)
    assert not any(parameter.requires_grad for parameter in norm.parameters())
    assert not is_batch_norm(norm)


@pytest.mark.parametrize('groups', [dict(), dict(num_groups=0), dict(num_groups=4)])
def test_groups_that_do_not_divide_the_channels(groups: dict):
    with pytest.raises(ValueError, match='num_groups is .*, expected a divisor of the 6'):
        build_norm(dict(type='GN', **groups), 6)


def test_other_options_reach_the_layer():
    norm = build_norm(dict(type='BN', eps=1e-3, momentum=0.01), 6)
    assert (norm.eps, norm.momentum) == (1e-3, 0.01)


@pytest.mark.parametrize('requires_grad', [True, False])
def test_requires_grad(requires_grad):
    norm = build_norm(dict(type='BN', requires_grad=requires_grad), 6)
    assert [p.requires_grad for p in norm.parameters()] == [requires_grad] * 2


@pytest.mark.parametrize('norm_cfg', [dict(type='IN'), dict(requires_grad=False)])
def test_an_unknown_type(norm_cfg):
    with pytest.raises(ValueError, match='norm_cfg type .* is unknown: use one of BN, SyncBN, GN'):
        build_norm(norm_cfg, 6)


def test_the_config_is_only_read():
    norm_cfg = dict(type='BN', requires_grad=False)
    build_norm(norm_cfg, 6)
    assert norm_cfg == dict(type='BN', requires_grad=False)
