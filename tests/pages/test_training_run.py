"""Details and curves of a work dir, and whether its predictions are newer than its weights."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.pages.report.training_run import network_name, read_run

from .made_runs import age, make_detector


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    return make_detector(tmp_path, 'run', ('bbox', 'segm'))


def save_checkpoint(work_dir: Path, name: str = 'epoch_2.pth') -> Path:
    file = work_dir / name
    torch.save({'state_dict': {}}, file)
    return file


def test_facts(work_dir: Path):
    save_checkpoint(work_dir)
    assert dict(read_run(work_dir, 'run').facts()) == {
        'Model': 'Net, PyramidTNT tiny',
        'Started': '2026-01-02 03:04',
        'Trained for': '2 epochs',
        'Last logged iteration': '20',
        'Time': '10.0 min',
        'Peak memory': '2.0 GiB',
        'Checkpoint': 'epoch_2.pth',
    }
    assert dict(read_run(work_dir, 'run').how_to_repeat()) == {'Versions': 'torch 2.15'}


def test_the_best_checkpoint_counts(work_dir: Path):
    best = save_checkpoint(work_dir, 'best_coco_bbox_mAP_epoch_1.pth')
    save_checkpoint(work_dir)
    assert read_run(work_dir, 'run').checkpoint == best


def add_lines(work_dir: Path, *lines: dict) -> None:
    (log,) = work_dir.glob('*/vis_data/scalars.json')
    log.write_text(log.read_text() + ''.join(json.dumps(line) + '\n' for line in lines))


def progress(work_dir: Path, **train_cfg) -> str:
    run = read_run(work_dir, 'run')
    run.config.train_cfg = train_cfg
    return dict(run.facts())['Trained for']


def test_an_epoch_counts_when_it_is_complete(work_dir: Path):
    add_lines(work_dir, dict(loss=0.3, epoch=3, step=25))
    assert progress(work_dir) == '2 epochs: stopped in epoch 3, or still running'
    assert progress(work_dir, max_epochs=4).startswith('2 of 4 epochs: stopped in epoch 3')
    add_lines(work_dir, {'coco/bbox_mAP': 0.3, 'step': 3})
    assert progress(work_dir, max_epochs=3) == '3 epochs'
    # Without an evaluation, the log file proves it.
    add_lines(work_dir, dict(loss=0.3, epoch=4, step=35))
    text = next(work_dir.glob('*/*.log'))
    text.write_text(text.read_text() + ' - INFO - Saving checkpoint at 40 iterations\n')
    assert progress(work_dir, max_epochs=4).startswith('3 of 4 epochs')
    text.write_text(text.read_text() + ' - INFO - Saving checkpoint at 4 epochs\n')
    assert progress(work_dir, max_epochs=4) == '4 epochs'


def test_a_resumed_epoch_is_not_complete_again(work_dir: Path):
    again = shutil.copytree(next(work_dir.glob('2026*')), work_dir / '20260202_030405')
    line = dict(loss=0.3, epoch=2, step=15)
    (again / 'vis_data' / 'scalars.json').write_text(json.dumps(line) + '\n')
    assert progress(work_dir) == '1 epoch: stopped in epoch 2, or still running'


def test_iterations_count_as_they_are_logged(work_dir: Path):
    (log,) = work_dir.glob('*/vis_data/scalars.json')
    log.write_text('{"loss": 1, "step": 90}\n{"mIoU": 5.0, "step": 96}\n')
    assert progress(work_dir, max_iters=200) == '96 of 200 iterations'
    assert progress(work_dir, max_iters=96) == '96 iterations'


def test_curves(work_dir: Path):
    points = list(read_run(work_dir, 'run').curves())
    of = {(p['chart'].title, p['curve'], p['chart'].unit) for p in points}
    assert of == {
        ('Evaluation coco/bbox', 'mAP', 'epoch'),
        ('Evaluation coco/segm', 'mAP', 'epoch'),
        ('Loss', 'loss', 'iteration'),
        ('Parts of the loss', 'loss_cls', 'iteration'),
        ('Parts of the loss', 'loss_bbox', 'iteration'),
        ('Learning rate', 'lr', 'iteration'),
        ('Seconds per iteration', 'time', 'iteration'),
        ('GPU memory (MiB)', 'memory', 'iteration'),
    }
    losses = [(p['step'], p['value']) for p in points if p['curve'] == 'loss']
    assert losses == [(10, 1), (20, 0.5)]


def test_predictions_are_newer_than_the_weights(work_dir: Path):
    assert read_run(work_dir, 'run').has_predictions(), 'the weights are gone'
    again = shutil.copytree(next(work_dir.glob('2026*')), work_dir / '20260202_030405')
    (again / 'vis_data' / 'scalars.json').touch()
    assert not read_run(work_dir, 'run').has_predictions(), 'of an earlier training'
    shutil.rmtree(again)
    checkpoint = save_checkpoint(work_dir)
    age(checkpoint, 100)
    assert read_run(work_dir, 'run').has_predictions()
    age(work_dir / 'predictions.bbox.json', 200)
    assert not read_run(work_dir, 'run').has_predictions(), 'one of the files is older'
    (work_dir / 'predictions.bbox.json').unlink()
    assert not read_run(work_dir, 'run').has_predictions()


def test_an_evaluation_is_asked_to_keep_them_there(work_dir: Path):
    run = read_run(work_dir, 'run')
    evaluator = run.evaluation_config().test_evaluator
    assert evaluator.outfile_prefix == str(work_dir / 'predictions')
    assert 'outfile_prefix' not in run.config.test_evaluator, 'a page shows the config as it was'


@pytest.mark.parametrize(
    ('key', 'value', 'message'),
    [
        ('default_scope', 'mmpretrain', 'predictions of mmdet and mmseg, not of mmpretrain'),
        (
            'test_evaluator',
            dict(type='LVISMetric'),
            'is LVISMetric: expected CocoMetric or Dense',
        ),
        ('test_evaluator', [], 'is missing: expected CocoMetric or Dense'),
    ],
)
def test_predictions_of_others(work_dir: Path, key: str, value: object, message: str):
    run = read_run(work_dir, 'run')
    run.config[key] = value
    with pytest.raises(UserError, match=message):
        run.has_predictions()


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('demo_gfl_lite0', 'GFL, efficientnet_lite0'),
        ('detr_r50_peg_50e', 'PEGDETR, ResNet-50'),
        ('mask_rcnn_ptnt_s_1x', 'MaskRCNN, PyramidTNT small'),
        ('upernet_ptnt_s_160k_ade20k', 'UPer, PyramidTNT small'),
        ('demo_classifier_ptnt_ti', 'PyramidTNT tiny'),
    ],
)
def test_networks_have_the_names_that_people_use(name: str, expected: str):
    assert network_name(ConfigView(read_config(name))) == expected
