"""The flag ``--json``: to a file, or alone on standard output."""

import json
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np

from ptnt_mm.workbench.cli.json_output import json_output
from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.engine import runner
from ptnt_mm.workbench.engine import test as testing

FIGURES = {'mAP': np.float32(0.5), 'IoU': [float('nan'), float('inf')], 'epoch': 3}
PLAIN = {'mAP': 0.5, 'IoU': [None, None], 'epoch': 3}


def test_a_file_beside_the_text(tmp_path: Path, capsys):
    file = tmp_path / 'figures.json'
    with json_output(file) as write:
        print('a table')
        write(FIGURES)
    assert json.loads(file.read_text()) == PLAIN
    assert capsys.readouterr() == ('a table\n', '')


def test_a_dash_has_standard_output_to_itself(capsys):
    with json_output(Path('-')) as write:
        print('a table')
        write(FIGURES)
    print('later')
    printed = capsys.readouterr()
    assert json.loads(printed.out.removesuffix('later\n')) == PLAIN
    assert printed.err == 'a table\n'


def test_without_a_file_nothing_is_written(capsys):
    with json_output(None) as write:
        print('a table')
        write(FIGURES)
    assert capsys.readouterr() == ('a table\n', '')


def test_metrics_of_a_test(tmp_path: Path, capsys, monkeypatch):
    """With all digits; the text is rounded."""
    metrics = {'coco/bbox_mAP': 0.46512345, 'mIoU': float('nan')}
    built = MagicMock(hooks=[])
    monkeypatch.setattr(testing, 'build_test', lambda *arguments, **options: built)
    monkeypatch.setattr(testing, 'run_test', lambda runner: metrics)
    monkeypatch.setattr(runner, 'log_file', lambda: Path('run.log'))
    config, file = tmp_path / 'mine.py', tmp_path / 'metrics.json'
    config.touch()
    assert run('test', [str(config), 'hf:me/weights', '--json', str(file)]) == 0
    assert json.loads(file.read_text()) == {'coco/bbox_mAP': 0.46512345, 'mIoU': None}
    said = capsys.readouterr().out
    assert 'AP    0.465\n' in said and 'mIoU  –\n' in said
