"""The benchmark, on images so small that it takes seconds."""

import json

import pytest
import torch
from torch import nn

from benchmark import run as benchmark_run
from benchmark import timing
from benchmark.contenders import BUILDERS, build_contender, counted_as
from benchmark.report import Row, to_dicts
from benchmark.timing import FORWARD, TRAINING, Setting
from ptnt_mm.models.layers.attention import EagerOuterAttention, FusedOuterAttention

from .workplace import load_tool

tool = load_tool('dev/time_backbones')

SMALL = ['--sizes', '64x96', '--rounds', '2', '--threads', '1']


def run(capsys, *arguments) -> tuple[int, str, str]:
    status = tool.main([*map(str, arguments)])
    return status, *capsys.readouterr()


def test_table_json_and_figures(capsys, tmp_path):
    models = ['ptnt_s', 'ptnt_s_eager']
    out = tmp_path / 'benchmarks'
    status, printed, _ = run(capsys, '--models', *models, *SMALL, '--sides', 64, '--out', out)
    assert status == 0
    assert f'{FORWARD}, 64x96' in printed and f'{TRAINING}, 64x96' in printed
    found = json.loads((out / 'benchmark.json').read_text())
    assert [row['name'] for row in found['rows']] == models * 2
    assert [row['name'] for row in found['sizes']] == models
    for row in found['rows']:
        assert len(row['seconds']) == 2 and min(row['seconds']) > 0
        assert row['peak_bytes'] > 0, 'measured in a process of its own'
        assert (row['ratio'] == 1) or row['name'] != 'ptnt_s'
    # Three passes' work in a training step; the fused form counts as the published one.
    ours, published = found['rows'][:2]
    assert ours['multiply_adds'] == published['multiply_adds'] > 2e8
    assert torch.__version__.startswith(found['machine']['torch'])
    for name in ('speed_memory.png', 'size.png'):
        assert (out / name).read_bytes().startswith(b'\x89PNG')
    status, _, errors = run(capsys, '--models', 'ptnt_ti', *SMALL, '--out', out)
    assert status != 0 and '--overwrite' in errors


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--models', 'swin_tt'], "did you mean 'swin_t'"),
        (['--models', 'ptnt_ti', '--device', 'cuda:99'], "device 'cuda:99' cannot be used here"),
    ],
)
def test_bad_input(capsys, arguments, message):
    status, _, errors = run(capsys, *arguments, *SMALL)
    assert status != 0
    assert message in errors


def test_what_cannot_run_is_left_out(capsys, monkeypatch):
    class Hungry(nn.Module):
        def forward(self, image):
            raise torch.OutOfMemoryError('no room')

    monkeypatch.setitem(BUILDERS, 'resnet50', Hungry)
    monkeypatch.setattr(benchmark_run, 'peak_memory', lambda *_: None)
    status, printed, progress = run(
        capsys, '--models', 'ptnt_ti', 'resnet50', '--modes', FORWARD, *SMALL, '--sides'
    )
    assert status == 0
    assert 'LEFT OUT: resnet50 does not fit into memory' in progress
    assert 'ptnt_ti' in printed and 'resnet50' not in printed


def test_a_busy_machine_is_named(capsys, monkeypatch):
    monkeypatch.setattr('os.getloadavg', lambda: (3.0, 3.0, 3.0))
    monkeypatch.setattr(benchmark_run, 'peak_memory', lambda *_: None)
    _, _, progress = run(capsys, '--models', 'ptnt_ti', '--modes', FORWARD, *SMALL, '--sides')
    assert 'the machine is busy (load 3.0)' in progress


def test_forms_of_ours():
    def attention(model):
        return type(model.stages[0].blocks[0].outer_attn)

    assert attention(build_contender('ptnt_ti')) is FusedOuterAttention
    assert attention(build_contender('ptnt_ti_eager')) is EagerOuterAttention
    assert build_contender('ptnt_ti_cp').stages[0].with_cp
    for name in ('ptnt_ti', 'ptnt_ti_cp', 'ptnt_ti_eager', 'ptnt_ti+compile'):
        assert counted_as(name) == 'ptnt_ti'
    assert {'swin_t', 'pvt_v2_b1', 'pvt_v2_b2', 'resnet50'} < set(BUILDERS)


@pytest.mark.parametrize(
    ('package', 'name'), [('timm', 'tnt_s_timm'), ('mmpretrain', 'tnt_s_mmpretrain')]
)
def test_backbones_for_one_size_are_built_for_each(package: str, name: str):
    pytest.importorskip(package)
    model = build_contender(name).train()
    for size in ((32, 48), (64, 32)):
        sum(output.float().mean() for output in model(torch.randn(1, 3, *size))).backward()
    assert list(model.models) == ['32x48', '64x32']
    assert all(one.training for one in model.models.values())
    millions = sum(parameter.numel() for parameter in model.models['32x48'].parameters()) / 1e6
    assert millions == pytest.approx(23.3, rel=0.02), 'without a head and with few positions'


@pytest.mark.parametrize('name', ['swin_t', 'pvt_v2_b1', 'pvt_v2_b2', 'resnet50'])
def test_peers_are_the_published_ones(name):
    """Parameters in millions, of the backbones without their classifiers, by their papers."""
    published = dict(swin_t=27.5, pvt_v2_b1=13.5, pvt_v2_b2=24.9, resnet50=23.5)
    millions = sum(parameter.numel() for parameter in build_contender(name).parameters()) / 1e6
    assert millions == pytest.approx(published[name], rel=0.02)


def test_ratios_are_taken_round_by_round():
    setting = Setting(FORWARD, (8, 8))
    rows = [
        Row(name, setting, seconds, None, 10)
        for name, seconds in {'ptnt_s': (1.0, 2.0, 4.0), 'other': (2.0, 2.0, 8.0)}.items()
    ]
    found = to_dicts(rows, 'ptnt_s')
    assert [row['ratio'] for row in found] == [1, 2]
    assert found[0]['multiply_adds_per_second'] == 10 / 2.0


def test_contenders_run_in_turn():
    order = []
    runs = {name: lambda name=name: order.append(name) for name in 'ab'}
    assert set(timing.interleave(runs, rounds=3)) == {'a', 'b'}
    assert order == list('ababab')


def test_nothing_long_starts_unasked(capsys, monkeypatch):
    monkeypatch.setattr('sys.argv', ['benchmark.py'])
    with pytest.raises(SystemExit) as caught:
        tool.main()
    assert caught.value.code == 0 and '--models' in capsys.readouterr().out
