"""The flag ``--json``: to a file, or alone on standard output."""

import json
from pathlib import Path

import numpy as np
import torch
from toy import ToyMetric, ToyModel, evaluated, quick, toy_config

from ptnt_mm.workbench.cli.json_output import json_output
from ptnt_mm.workbench.cli.main import run

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
    monkeypatch.setattr(ToyMetric, 'compute_metrics', lambda self, results: metrics)
    monkeypatch.chdir(tmp_path)
    config = evaluated(quick(toy_config(tmp_path / 'run')))
    for part in ('dataloader', 'cfg', 'evaluator'):
        config[f'test_{part}'] = config[f'val_{part}']
    config.dump('mine.py')
    torch.save(dict(state_dict=ToyModel().state_dict(), meta={}), 'x.pth')
    file = tmp_path / 'metrics.json'
    assert run('test', ['mine.py', 'x.pth', '--json', str(file)]) == 0
    assert json.loads(file.read_text()) == {'coco/bbox_mAP': 0.46512345, 'mIoU': None}
    said = capsys.readouterr().out
    assert 'AP    0.465\n' in said and 'mIoU  –\n' in said
