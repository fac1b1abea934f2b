"""The commands on a config of mmrotate: training, its evaluation, and predictions."""

import json
import math
from pathlib import Path

import pytest
import torch

from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.read import read_config


@pytest.fixture
def checkpoint(dota: Path) -> Path:
    """Random weights of the detector."""
    config = read_config(dota / 'config.py')
    import_host(config.default_scope)
    file = dota / 'random.pth'
    torch.save(dict(state_dict=build_model(config).state_dict(), meta={}), file)
    return file


def test_a_run_is_evaluated_with_dotas_mean_precision_and_resumes(dota: Path):
    words = [str(dota / 'config.py'), '--work-dir', str(dota / 'run'), '--seed', '0']
    assert run('train', [*words, '--epochs', '1']) == 0
    assert 'dota/mAP' in ''.join(file.read_text() for file in dota.glob('run/*/*.log'))
    assert run('train', [*words, '--epochs', '2', '--resume']) == 0
    assert (dota / 'run' / 'epoch_2.pth').exists()


def test_predictions_have_an_angle_and_corners(dota: Path, checkpoint: Path):
    out, config = dota / 'out', str(dota / 'config.py')
    words = [str(dota / 'images'), config, str(checkpoint), '--score-thr', '0', '--out']
    assert run('infer', [*words, str(out)]) == 0
    written = json.loads((out / 'predictions.json').read_text())
    assert 'clockwise' in written['rotated_box']
    for image in written['images']:
        for found in image['detections']:
            box, corners = found['rotated_box'], torch.tensor(found['corners'])
            assert corners.mean(0).tolist() == pytest.approx([box['x'], box['y']], abs=0.02)
            along = corners[1] - corners[0]
            assert float(along.norm()) == pytest.approx(box['width'], abs=0.05)
            turn = math.atan2(*along.flip(0).tolist()) - box['angle']
            assert box['width'] < 1 or abs(math.remainder(turn, 2 * math.pi)) < 0.05
            around = [*corners.amin(0).tolist(), *corners.amax(0).tolist()]
            assert found['box'] == pytest.approx(around, abs=0.02)
    assert len(list((out / 'drawn').iterdir())) == 4
    assert run('infer', [*words, str(dota / 'labels'), '--labels', 'coco']) == 0


def test_what_cannot_be_done_is_refused_in_a_line(dota: Path, checkpoint: Path, capsys):
    config = str(dota / 'config.py')
    for command, words, reason in (
        ('export', ['--out', 'x.onnx'], "default_scope='mmrotate': expected mmdet or mmseg or"),
        ('test', ['--tta'], '--tta needs tta_model and tta_pipeline'),
        ('infer', ['--out', 'out', '--tile', '32'], 'merges upright boxes'),
    ):
        images = [str(dota / 'images')] * (command == 'infer')
        assert run(command, [*images, config, str(checkpoint), *words]) == 1
        assert reason in capsys.readouterr().err
