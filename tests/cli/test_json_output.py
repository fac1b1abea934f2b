"""The flag ``--json``: to a file, or alone on standard output."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from toy import ToyMetric, ToyModel, evaluated, quick, toy_config

from ptnt_mm.workbench.cli.main import run

METRICS = {
    'coco/bbox_mAP': 0.46512345,
    'aAcc': np.float32(0.5),
    'mIoU': float('nan'),
    'mAcc': float('inf'),
}
PLAIN = {'coco/bbox_mAP': 0.46512345, 'aAcc': 0.5, 'mIoU': None, 'mAcc': None}


@pytest.fixture
def tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of a test with these metrics."""
    monkeypatch.setattr(ToyMetric, 'compute_metrics', lambda self, results: METRICS)
    monkeypatch.chdir(tmp_path)
    config = evaluated(quick(toy_config(tmp_path / 'run')))
    for part in ('dataloader', 'cfg', 'evaluator'):
        config[f'test_{part}'] = config[f'val_{part}']
    config.dump('mine.py')
    torch.save(dict(state_dict=ToyModel().state_dict(), meta={}), 'x.pth')
    return ['mine.py', 'x.pth']


def test_a_file_beside_the_text(tested: list[str], capsys):
    """With all digits; the text is rounded."""
    assert run('test', [*tested, '--json', 'metrics.json']) == 0
    assert json.loads(Path('metrics.json').read_text()) == PLAIN
    said = capsys.readouterr().out
    assert ' 0.465\n' in said and re.search('mIoU +–\n', said)


def test_a_dash_has_standard_output_to_itself(tested: list[str], capsys):
    assert run('test', [*tested, '--json', '-']) == 0
    print('later')
    printed = capsys.readouterr()
    assert json.loads(printed.out.removesuffix('later\n')) == PLAIN
    assert ' 0.465\n' in printed.err
