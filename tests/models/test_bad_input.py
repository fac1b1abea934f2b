"""Each mistake is an error that names the value, what was expected, and what to do."""

import re

import pytest
from micro import MICRO_ARCH

from ptnt_mm.models import CPVT, TNT, PyramidTNT
from ptnt_mm.models.backbone import full_names

NARROW = MICRO_ARCH | dict(outer_dims=(2, 4, 4, 4), outer_heads=(1, 1, 1, 1))


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (dict(arch='smal'), "unknown arch 'smal': did you mean 'small'?"),
        (dict(arch='resnet50'), f'expected one of {", ".join(full_names(PyramidTNT.archs))}'),
        (dict(arch='S'), "unknown arch 'S': did you mean 's'?"),
        (dict(arch=None), 'unknown arch None'),
        (dict(arch=['tiny']), "unknown arch ['tiny']"),
        (dict(out_indices=2), 'out_indices is 2: expected indices of stages such as (1, 2, 3)'),
        (
            dict(out_indices='012'),
            "out_indices is '012': expected indices of stages such as (1, 2, 3)",
        ),
        (dict(out_indices=()), 'out_indices is ()'),
        (dict(out_indices=(0, 4)), 'out_indices is (0, 4)'),
        (dict(out_indices=(-5,)), 'out_indices is (-5,)'),
        (dict(out_indices=(1, 1, 2)), 'out_indices is (1, 1, 2)'),
        (dict(out_indices=(2, 1)), 'expected increasing indices of stages from 0 to 3, such as'),
        (dict(pretrain_img_size=224), 'pretrain_img_size is 224: expected a multiple of 64'),
        (dict(pretrain_img_size=0), 'pretrain_img_size is 0:'),
        (dict(pretrain_img_size='256'), "pretrain_img_size is '256': expected a multiple of 64"),
        (dict(frozen_stages=5), 'frozen_stages is 5; expected -1 to 4'),
        (dict(frozen_stages=-2), 'frozen_stages is -2'),
        (dict(frozen_stages='1'), "frozen_stages is '1'; expected -1 to 4"),
        (dict(frozen_stages=True), 'frozen_stages is True; expected -1 to 4'),
        (dict(out_indices=(False, 2)), 'out_indices is (False, 2): expected increasing indices'),
        (dict(out_indices=(0.0, 2)), 'out_indices is (0.0, 2): expected increasing indices'),
        (dict(drop_path_rate=False), 'drop_path_rate is False: expected at least 0 and below 1'),
        (dict(mlp_ratio=True), 'mlp_ratio is True: expected a number such as 4'),
        (dict(norm_cfg=dict(type='GN', num_groups=True)), "'GN': num_groups is True, expected a"),
        (dict(position=dict(type='peg', blocks=(False,))), 'blocks of a PEG are (False,)'),
        (dict(position=dict(type='peg', kernel_size=True)), 'kernel_size of a PEG is True'),
        (dict(drop_path_rate=1.0), 'drop_path_rate is 1.0: expected at least 0 and below 1'),
        (dict(drop_path_rate=None), 'drop_path_rate is None: expected at least 0 and below 1'),
        (
            dict(position='peg', relative_position='flat'),
            "position='peg' has no positions between pairs",
        ),
        (dict(with_se=True, arch=NARROW), 'an outer width of 2 is below its reduction 4'),
        (dict(mlp_ratio='4'), "mlp_ratio is '4': expected a number such as 4"),
        (dict(mlp_ratio=0), 'mlp_ratio is 0: expected'),
        (dict(attention='fuse'), "unknown attention 'fuse': did you mean 'fused'?"),
        (dict(relative_position='gird'), "unknown relative_position 'gird': did you mean 'grid'?"),
        (dict(norm_cfg=dict(type='IN')), "norm_cfg type 'IN' is unknown: use one of BN, SyncBN"),
        (dict(norm_cfg=None), "norm_cfg is None: expected a dict such as dict(type='BN')"),
        (dict(position=None), 'unknown position None: '),
        (dict(position=dict(type='peg', blocks=1)), 'blocks of a PEG are 1: expected a list'),
        (dict(position=dict(type='peg', blocks=(0.5,))), 'blocks of a PEG are (0.5,): expected a'),
        (dict(position=dict(type='peg', kernel_size=3.0)), 'kernel_size of a PEG is 3.0'),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else '',
)
def test_options(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        PyramidTNT(**dict(arch='tiny') | options)


@pytest.mark.parametrize('name', ['drop_rate', 'attn_drop_rate', 'drop_path_rate'])
@pytest.mark.parametrize('rate', [-0.5, 1, 1.5, float('nan'), '0.1', None, True])
@pytest.mark.parametrize(('network', 'arch'), [(PyramidTNT, 's'), (TNT, 's'), (CPVT, 's')])
def test_rates(network, arch, name, rate):
    message = f'{name} is {rate!r}: expected at least 0 and below 1'
    with pytest.raises(ValueError, match=re.escape(message)):
        network(arch, **{name: rate})


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        (dict(width=3), "unknown=['width']"),
        (dict(depths=(2, 2, 2)), "arch['depths'] is (2, 2, 2): expected 4 int"),
        (dict(depths=2), "arch['depths'] is 2: expected 4 integers of at least 1"),
        (dict(outer_heads=(0, 2, 2, 2)), "arch['outer_heads'] is (0, 2, 2, 2): expected 4 int"),
        (dict(inner_heads=(True, 1, 1, 1)), "arch['inner_heads'] is (True, 1, 1, 1)"),
        (dict(outer_heads=(3, 2, 2, 2)), 'outer width 8 does not divide into 3 outer heads'),
        (dict(inner_heads=(1, 3, 2, 1)), 'inner width 4 does not divide into 3 inner heads'),
        (dict(inner_depths=(1, 3, 1, 1)), '3 blocks with an inner transformer in a stage of 2'),
        (dict(inner_depths=(-1, 1, 1, 1)), "arch['inner_depths'] is (-1, 1, 1, 1): expected 4"),
        (dict(pretrain_img_size=100), 'pretrain_img_size is 100'),
    ],
    ids=str,
)
def test_arch_dicts(micro_arch, changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        PyramidTNT(micro_arch | changes)


def test_an_arch_dict_with_missing_keys(micro_arch):
    arch = {key: values for key, values in micro_arch.items() if key != 'inner_dims'}
    with pytest.raises(ValueError, match=re.escape("missing=['inner_dims']")):
        PyramidTNT(arch)
