"""What a work dir tells: facts, curves, and whether its predictions are those of its weights."""

import shutil
import zipfile
from pathlib import Path

import pytest

pytest.importorskip('sklearn')
pytest.importorskip('mmdet')

from ptnt_mm.report.training_run import read_run  # noqa: E402
from ptnt_mm.utils.errors import UserError  # noqa: E402

from .made_runs import age, make_detector  # noqa: E402


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    return make_detector(tmp_path, 'run', ('bbox', 'segm'))


def save_checkpoint(work_dir: Path) -> Path:
    file = work_dir / 'epoch_2.pth'
    with zipfile.ZipFile(file, 'w') as archive:
        archive.writestr('weights', '')
    return file


def test_facts(work_dir: Path):
    save_checkpoint(work_dir)
    assert dict(read_run(work_dir, 'run').facts()) == {
        'Model': 'Net PyramidTNT tiny',
        'Started': '2026-01-02 03:04',
        'Trained for': '2 epochs, 20 iterations',
        'Time': '10.0 min',
        'Peak memory': '2.0 GiB',
        'Checkpoint': 'epoch_2.pth',
        'Versions': 'torch 2.15',
    }


def test_curves(work_dir: Path):
    points = list(read_run(work_dir, 'run').curves())
    of = {(p['group'], p['curve'], p['unit']) for p in points}
    assert of == {
        ('Evaluation coco/bbox', 'mAP', 'epoch'),
        ('Evaluation coco/segm', 'mAP', 'epoch'),
        ('Loss', 'loss', 'iteration'),
        ('Parts of the loss', 'loss_cls', 'iteration'),
        ('Parts of the loss', 'loss_bbox', 'iteration'),
        ('Learning rate', 'lr', 'iteration'),
        ('Seconds per iteration', 'time', 'iteration'),
        ('Memory (MiB)', 'memory_mib', 'iteration'),
    }
    losses = [(p['step'], p['value']) for p in points if p['curve'] == 'loss']
    assert losses == [(10, 1), (20, 0.5)]


def test_losses_that_are_no_numbers_are_left_out(work_dir: Path):
    (log,) = work_dir.glob('*/vis_data/scalars.json')
    log.write_text(log.read_text() + '{"loss": NaN, "lr": 0.1, "time": 1, "epoch": 2, "step": 30}')
    losses = [p['step'] for p in read_run(work_dir, 'run').curves() if p['curve'] == 'loss']
    assert losses == [10, 20]


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
        ('default_scope', 'mmpretrain', 'predictions of mmpretrain cannot be read here'),
        ('test_evaluator', dict(type='LVISMetric'), 'is LVISMetric: expected CocoMetric'),
        ('test_evaluator', [], 'is not there: expected CocoMetric'),
    ],
)
def test_predictions_of_others(work_dir: Path, key: str, value: object, message: str):
    run = read_run(work_dir, 'run')
    run.config[key] = value
    with pytest.raises(UserError, match=message):
        run.has_predictions()
