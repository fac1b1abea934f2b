"""The command for the day a GPU is there: what it repeats, and what it shows."""

import json
from pathlib import Path

import pytest

from benchmark.contenders import check_name

from .workplace import load_tool

tool = load_tool('dev/measure_gpu')


def measure(out: Path, *steps: str) -> int:
    return tool.main(['--out', str(out), '--device', 'cpu', '--steps', *steps])


@pytest.fixture
def commands(monkeypatch) -> dict[str, list[str]]:
    """Two steps that take no time; a test may let one fail."""
    commands = {
        'speed': ['sh', '-c', 'echo date today; echo tables'],
        'tests': ['echo', '3 passed'],
    }
    monkeypatch.setattr(tool, 'steps_for', lambda device, out: commands)
    return commands


def test_what_has_succeeded_is_not_repeated(commands, tmp_path, capsys):
    commands['tests'] = ['false']
    assert measure(tmp_path, 'speed', 'tests') == 1
    printed = capsys.readouterr()
    assert 'tables' in printed.out and 'tests.log' in printed.err
    commands.update(speed=['false'], tests=['echo', '3 passed'])
    assert measure(tmp_path, 'speed', 'tests') == 0, 'goes on with the step that had failed'
    assert '3 passed' in capsys.readouterr().out


def test_one_folder_is_for_one_device(commands, tmp_path, capsys):
    assert measure(tmp_path, 'speed') == 0
    assert tool.main(['--out', str(tmp_path), '--device', 'cuda', '--steps', 'speed']) == 1
    assert 'measurements of cpu' in capsys.readouterr().err


def test_an_unknown_step(commands, tmp_path, capsys):
    assert measure(tmp_path, 'sped') == 1
    assert "'sped'" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_losses_side_by_side(tmp_path):
    for name, losses in {
        'seed-1': [3.0] * 20 + [1.0] * 5,
        'seed-2': [3.5] * 20 + [1.5] * 4,
    }.items():
        scalars = tmp_path / name / 'date' / 'vis_data' / 'scalars.json'
        scalars.parent.mkdir(parents=True)
        lines = [*({'loss': loss} for loss in losses), {'coco/bbox_mAP': 0.1}]
        scalars.write_text('\n'.join(map(json.dumps, lines)))
    table = tool.curves({name: tool.losses_of(tmp_path / name) for name in ('seed-1', 'seed-2')})
    assert '|  3.000 |  3.500 |' in table and '|  1.000 |  1.500 |' in table
    assert '| 21 to 24' in table


def judged(times: dict[str, tuple[float, float]], losses: dict[str, list[float]]) -> list[str]:
    """The last column of the table of verdicts."""
    rows = [
        dict(name=name, batch=batch, seconds=[time, 9.0, time])
        for name, both in times.items()
        for batch, time in zip((2, 8), both, strict=True)
    ]
    lines = tool.verdicts(rows, losses).splitlines()[2:]
    return [line.split('|')[-2].strip() for line in lines]


TIMES = {
    'ptnt_s': (1, 1),
    'ptnt_s+reduce_overhead': (0.9, 1.1),
    'ptnt_s+compile': (0.96, 1.2),
    'ptnt_s+channels_last': (0.97, 0.94),
    'mask_rcnn_ptnt_s+fused': (1.1, 1),
    'mask_rcnn_ptnt_s+foreach': (1, 1),
}
LOSSES = {'seed-1': [3.0] * 30, 'seed-2': [3.2] * 30, 'reduce-overhead': [3.1] * 30}


def test_every_rule_has_a_verdict():
    assert judged(TIMES, LOSSES) == ['kept', 'dropped', 'kept', '`foreach` in the schedules']
    slower = TIMES | {'ptnt_s+compile': (0.9, 1.2), 'mask_rcnn_ptnt_s+foreach': (1.2, 1)}
    assert judged(slower, LOSSES)[1::2] == ['documented', 'kept']
    assert judged({}, {}) == ['not measured'] * 4


def test_a_mode_is_kept_if_it_gains_and_trains_alike():
    assert judged(TIMES, LOSSES | {'reduce-overhead': [3.3] * 30})[0] == 'dropped'
    assert judged(TIMES, {})[::2] == ['losses not measured', 'kept'], 'others need no losses'
    assert judged(TIMES | {'ptnt_s+reduce_overhead': (0.96, 0.9)}, LOSSES)[0] == 'dropped'


@pytest.mark.parametrize('device', ['cpu', 'cuda:1'])
def test_every_step_names_its_device_and_folder(device, tmp_path):
    steps = tool.steps_for(device, tmp_path)
    for name in tool.TIMED:
        words = list(map(str, steps[name]))
        assert words[words.index('--device') + 1] == device and str(tmp_path / name) in words
        models = words[words.index('--models') + 1 : words.index('--rounds')]
        for model in models:
            check_name(model)
    assert ('reduce-overhead' in steps) == (device != 'cpu')
    assert next(iter(steps)) == 'tests', 'parity comes before any time'
