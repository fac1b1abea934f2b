"""Training, evaluation and resuming from the command line."""

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from micro import MICRO_ARCH
from repository import ROOT, contents

from ptnt_mm.models import PyramidTNT
from ptnt_mm.weights.reader.read import read_checkpoint
from ptnt_mm.workbench.engine.modes import cpu_has_bfloat16

from .workplace import CONFIG, Training, Workplace, figures, options, train_lines


def test_a_run_prints_what_matters_and_logs_the_rest(training: Training):
    assert 'Effective batch: 2 images x 1 process x 1 step = 2' in training.output
    assert 'Learning rate: 0.005 is for batch 1; --auto-scale-lr would make it 0.01' in (
        training.output
    )
    assert 'NO PRETRAINED WEIGHTS' in training.output
    assert re.search(r'^epoch 6/6  2/\d+  loss \d', training.output, re.M)
    for noise in ('paramwise_options', 'System environment', 'index created!', 'mmengine - INFO'):
        assert noise not in training.output
    log = next(training.run.glob('*/*.log')).read_text()
    assert 'paramwise_options -- backbone.outer_pos:weight_decay=0.0' in log
    assert 'Config:' in log
    for what in ('Command: ', 'Versions: ', "mmcv's operators: ", 'Revision of ', 'seed: 1'):
        assert what in log


def test_the_end_has_scores_paths_and_the_next_commands(training: Training):
    closing = training.output[training.output.index('Done in ') :]
    assert re.search(r'^class +images +objects +AP +AP50\n.+ \d\.\d{3}$', closing, re.M)
    checkpoint, log, curves = (
        re.search(rf'^{name} +(\S+)$', closing, re.M)[1] for name in ('checkpoint', 'log', 'curves')
    )
    assert closing.split('Next:\n')[1].startswith('  ptnt report run\n  ptnt infer PHOTOS ')
    folder = training.run.parent
    assert (folder / checkpoint).samefile(training.checkpoint)
    assert (folder / log).is_file()
    assert (folder / curves).read_bytes().startswith(b'\x89PNG')


def test_test_gives_the_figures_of_the_run(workplace: Workplace, training: Training):
    done = workplace.run(
        'test.py', training.config, training.checkpoint, '--work-dir', 'test',
        '--show-dir', 'shown', '--out', 'predictions.pkl',
    )  # fmt: skip
    assert figures(done.stdout) == figures(training.output)
    assert max(figures(done.stdout)) > 0
    assert re.search('^Testing .* images, the same as in validation$', done.stdout, re.M)
    assert len(list((workplace.folder / 'shown').glob('*'))) == 10
    assert (workplace.folder / 'predictions.pkl').is_file()


def test_a_report_evaluates_what_was_not_evaluated(workplace: Workplace, training: Training):
    before = contents(training.run)
    first = workplace.run('report.py', 'run')
    assert first.stdout.strip().endswith('Done. Page: run/report.html')
    after = contents(training.run)
    assert after.pop('report.html', None) and after == before, 'it only reads the work dir'
    page = (training.run / 'report.html').read_text()
    assert f'<dd>{figures(training.output)[0]:.3f}</dd>' in page
    # A test that keeps its predictions writes such a file.
    (training.run / 'predictions.bbox.json').write_text('[]')
    again = workplace.run('report.py', 'run', '--out', 'page.html')
    assert again.stdout.strip().endswith('Done. Page: page.html')
    assert '<dd>0.000</dd>' in (workplace.folder / 'page.html').read_text(), 'what was kept is read'


def test_test_time_augmentation(workplace: Workplace, training: Training):
    done = workplace.run(
        'test.py', training.config, training.checkpoint, '--work-dir', 'tta', '--tta'
    )
    assert re.search(r'^Testing .*, each in [26] views', done.stdout, re.M)
    plain, averaged = figures(training.output), figures(done.stdout)
    assert averaged != plain and abs(averaged[0] - plain[0]) < 0.1


def test_a_finished_run_is_not_trained_over(workplace: Workplace, training: Training):
    done = workplace.run('train.py', training.config, '--work-dir', 'run', check=False)
    assert done.returncode == 1
    assert 'error: run contains checkpoints of an earlier run (epoch_6.pth)' in done.stdout
    assert training.checkpoint.is_file()


def test_ctrl_c_explains_how_to_continue(workplace: Workplace, training: Training):
    more = options('train_cfg.max_epochs=9')
    args = (training.config, '--work-dir', 'interrupted', '--overwrite', *more)
    output = workplace.stop_in_second_epoch(signal.SIGINT, *args)
    assert 'epoch_1.pth is the last complete checkpoint; continue with' in output
    command = output.strip().splitlines()[-1]
    assert command.endswith('--resume') and '--overwrite' not in command
    assert 'Traceback' not in output


def test_resuming_where_nothing_was_saved_starts_at_the_beginning(
    workplace: Workplace, training: Training
):
    one = options('train_cfg.max_epochs=1')
    done = workplace.run('train.py', training.config, '--work-dir', 'fresh', '--resume', *one)
    assert [row['step'] for row in train_lines(workplace.folder / 'fresh')] == [1, 2]
    assert 'Done in ' in done.stdout


def test_a_run_started_with_pretrained_weights_is_resumed_without_their_file(
    workplace: Workplace, training: Training
):
    file = workplace.folder / 'authors.pth.tar'
    torch.save({'state_dict': PyramidTNT(MICRO_ARCH).state_dict()}, file)
    args = ('train.py', training.config, '--work-dir', 'tuned')
    done = workplace.run(*args, '--pretrained', file, *options('train_cfg.max_epochs=1'))
    assert 'NO PRETRAINED WEIGHTS' not in done.stdout
    assert re.search(r'Weights from\s.*authors.pth.tar\s+\(state_dict\)', done.stdout)
    assert 'missing' not in done.stdout
    file.unlink()
    done = workplace.run(*args, '--resume', *options())
    assert 'Continuing after epoch 1\n' in done.stdout
    before, after = (
        read_checkpoint(workplace.folder / 'tuned' / f'epoch_{n}.pth')['state_dict'] for n in (1, 2)
    )
    stem = [key for key in before if key.startswith('backbone.patch_embed') and 'running' in key]
    assert stem and all(torch.equal(before[key], after[key]) for key in stem)


def test_the_checkpoint_of_another_model_is_refused(workplace: Workplace, training: Training):
    done = workplace.run(
        'test.py', training.config, training.checkpoint, '--work-dir', 'other',
        '--cfg-options', 'model.neck.out_channels=64', 'model.bbox_head.in_channels=64',
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f'error: {training.checkpoint} does not fit the model' in done.stdout
    assert 'lateral_convs' in done.stdout and 'Traceback' not in done.stdout


def test_a_model_of_more_classes_than_the_data_is_refused(workplace: Workplace, training: Training):
    done = workplace.run(
        'test.py', training.config, training.checkpoint, '--work-dir', 'other',
        '--cfg-options', 'model.bbox_head.num_classes=7', check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert 'model.bbox_head.num_classes: is 7' in done.stdout and 'Traceback' not in done.stdout


def test_a_config_of_ones_own_in_another_folder(workplace: Workplace):
    file = workplace.folder / 'own' / 'mine.py'
    file.parent.mkdir()
    file.write_text(f"""
_base_ = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'
custom_imports = dict(imports=['ptnt_mm'], allow_failed_imports=False)
model = dict(
    backbone=dict(_delete_=True, type='PyramidTNT', arch={MICRO_ARCH}, out_indices=(1, 2, 3)),
    neck=[
        dict(type='TransposedConvNeck', in_channels=[16, 16, 8]),
        dict(type='FPN', in_channels=[16, 16, 8], out_channels=32, num_outs=5),
    ],
    bbox_head=dict(num_classes=4, in_channels=32, feat_channels=32),
)
root = 'data/demo/'
classes = dict(classes=('ball', 'coin', 'crate', 'cup'))
train_dataloader = dict(
    num_workers=0,
    persistent_workers=False,
    dataset=dict(
        data_root=root, metainfo=classes, ann_file='annotations/instances_train.json',
        data_prefix=dict(img='train/'), indices=2,
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='LoadAnnotations', with_bbox=True),
            dict(type='Resize', scale=(128, 96), keep_ratio=True),
            dict(type='PackDetInputs'),
        ],
    ),
)
train_cfg = dict(max_epochs=1, val_interval=9)
val_dataloader = dict(
    dataset=dict(
        data_root=root, metainfo=classes, ann_file='annotations/instances_val.json',
        data_prefix=dict(img='val/'), indices=1,
    )
)
val_evaluator = dict(ann_file=root + 'annotations/instances_val.json')
default_hooks = dict(logger=dict(interval=1))
""")
    done = workplace.run('train.py', file, '--work-dir', 'mine')
    assert re.search(r'^epoch 1/\d+  1/1  loss', done.stdout, re.M)


def _mmdet_tool(name: str) -> Path:
    import mmdet

    return Path(mmdet.__file__).parent / '.mim' / 'tools' / name


def test_mmdets_own_tools_run_our_configs(workplace: Workplace, training: Training):
    one = options('train_cfg.max_epochs=1')
    workplace.run(_mmdet_tool('train.py'), training.config, '--work-dir', 'mmdet', *one)
    assert (workplace.folder / 'mmdet' / 'epoch_1.pth').is_file()
    tested = workplace.run(
        _mmdet_tool('test.py'), training.config, training.checkpoint, '--work-dir', 'mmdet-test'
    )
    logged = [
        re.search(rf'coco/{key}: (\S+)', tested.stdout)[1] for key in ('bbox_mAP', 'bbox_mAP_50')
    ]
    assert list(map(float, logged)) == figures(training.output)


def test_coco_that_is_not_there_is_said_before_mmdet_is_imported(workplace: Workplace):
    config = ROOT / 'configs' / 'retinanet_ptnt_s_1x.py'
    tools = ROOT / 'tools'
    code = f"""
import runpy, sys
sys.argv, sys.path[0] = ['train.py', {str(config)!r}], {str(tools)!r}
try:
    runpy.run_path({str(tools / 'train.py')!r}, run_name='__main__')
finally:
    print('mmdet was imported:', 'mmdet' in sys.modules)
"""
    # A new process: the server of the forked ones may have imported mmdet for another test.
    command = [sys.executable, '-c', code]
    done = subprocess.run(
        command, cwd=workplace.folder, env=workplace.environment(), capture_output=True, text=True
    )
    assert done.returncode == 1
    assert 'data/coco/annotations/instances_train2017.json does not exist' in done.stderr
    assert 'Traceback' not in done.stderr
    assert 'mmdet was imported: False' in done.stdout


def test_a_run_that_cannot_start_throws_nothing_away(workplace: Workplace, training: Training):
    kept = workplace.folder / 'kept'
    kept.mkdir()
    shutil.copyfile(training.checkpoint, kept / 'epoch_1.pth')
    wrong = workplace.folder / 'small.pth'
    torch.save(PyramidTNT('small', out_indices=(0,)).state_dict(), wrong)
    args = (CONFIG, '--work-dir', kept, '--overwrite')
    for more, message in (
        (('--pretrained', wrong), 'weights of a different shape'),
        (('--load-from', kept / 'epoch_1.pth'), '--overwrite would remove'),
    ):
        done = workplace.run('train.py', *args, *more, check=False)
        assert done.returncode == 1 and message in done.stdout
        assert (kept / 'epoch_1.pth').is_file()


def test_unsafe_loading_is_refused(workplace: Workplace):
    done = workplace.run('train.py', CONFIG, check=False, TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD='1')
    assert done.returncode == 1
    assert 'unset TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD' in done.stdout


@pytest.mark.skipif(torch.cuda.is_available() or cpu_has_bfloat16(), reason='--amp is no error')
def test_amp_without_bfloat16(workplace: Workplace):
    done = workplace.run('train.py', CONFIG, '--amp', '--work-dir', 'amp', check=False)
    assert done.returncode == 1 and '--amp needs an accelerator' in done.stdout
