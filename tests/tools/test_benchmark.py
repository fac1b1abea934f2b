"""The benchmark, on images so small that it takes seconds."""

import json

import torch
from forked import start_server

from benchmark.report import Row, to_dicts
from benchmark.timing import FORWARD, TRAINING, Setting

from .workplace import load_tool

tool = load_tool('dev/time_backbones')

SMALL = ['--sizes', '64x96', '--rounds', '2', '--threads', '1']


def run(capsys, *arguments) -> tuple[int, str, str]:
    status = tool.main([*map(str, arguments)])
    return status, *capsys.readouterr()


def test_table_json_and_figures(capsys, tmp_path):
    start_server()  # otherwise the tool chooses what the server of later tests has imported
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
        assert row['peak_bytes'] > 0, 'measured in a separate process'
        assert (row['ratio'] == 1) or row['name'] != 'ptnt_s'
    # Three passes' work in a training step; the fused form counts as the published one.
    ours, published = found['rows'][:2]
    assert ours['multiply_adds'] == published['multiply_adds'] > 2e8
    machine = found['machine']
    assert torch.__version__.startswith(machine['torch'])
    assert machine['vectors'] == torch.backends.cpu.get_cpu_capability()
    for name in ('speed_memory.png', 'size.png'):
        assert (out / name).read_bytes().startswith(b'\x89PNG')
    status, _, errors = run(capsys, '--models', 'ptnt_ti', *SMALL, '--out', out)
    assert status != 0 and '--overwrite' in errors


def test_ratios_are_taken_round_by_round():
    setting = Setting(FORWARD, (8, 8))
    rows = [
        Row(name, setting, seconds, None, 10)
        for name, seconds in {'ptnt_s': (1.0, 2.0, 4.0), 'other': (2.0, 2.0, 8.0)}.items()
    ]
    found = to_dicts(rows, 'ptnt_s')
    assert [row['ratio'] for row in found] == [1, 2]
    assert found[0]['multiply_adds_per_second'] == 10 / 2.0
