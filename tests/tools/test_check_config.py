"""Checking a config from the command line, and before training."""

import shutil

from .workplace import CONFIG, Workplace

HEAD = 'model.bbox_head.num_classes=80'


def test_a_correct_config(workplace: Workplace):
    done = workplace.run('check_config.py', CONFIG)
    assert done.stdout.splitlines()[-1] == 'nothing found'
    assert 'ok       train: 20 images open, all of the annotated size' in done.stdout
    assert 'ok       a training step: ' in done.stdout
    assert 'ok       val: an image is evaluated: coco/bbox_mAP' in done.stdout


def test_errors_make_the_exit_status_1(workplace: Workplace):
    done = workplace.run('check_config.py', CONFIG, '--cfg-options', HEAD, check=False)
    assert done.returncode == 1
    assert 'model.bbox_head.num_classes: is 80, the data has 4 classes' in done.stdout
    assert done.stdout.splitlines()[-1] == '1 error, 0 warnings'


def test_training_does_not_begin_with_errors(workplace: Workplace):
    args = ('--work-dir', 'faulty', '--cfg-options', HEAD)
    done = workplace.run('train.py', CONFIG, *args, check=False)
    assert done.returncode == 1 and 'Traceback' not in done.stdout
    error = done.stdout[done.stdout.index('error: ') :]
    assert 'model.bbox_head.num_classes: is 80' in error
    assert 'ptnt check' in error
    shutil.rmtree(workplace.folder / 'faulty')
