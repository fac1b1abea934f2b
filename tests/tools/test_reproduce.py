"""The command line of the model zoo."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from logs import evaluation, map_evaluation, write_log
from mmengine.config import Config

from ptnt_mm.utils.errors import UserError

from .workplace import ROOT, load_tool

tool = load_tool('reproduce')


def run(capsys, *arguments) -> tuple[int, str, str]:
    status = tool.main([*map(str, arguments)])
    return status, *capsys.readouterr()


def test_commands(capsys):
    names = ('retinanet_ptnt_s_1x', 'mask_rcnn_ptnt_b_3x')
    status, printed, _ = run(capsys, 'commands', *names, '--weights', 'elsewhere')
    assert status == 0
    first, second = printed.splitlines()
    assert first.startswith('ptnt train retinanet_ptnt_s_1x --pretrained elsewhere/ptnt_s_82')
    assert 'ptnt_b_84.1.pth.tar' in second


def test_a_command_does_not_wait_for_torch():
    words = ['commands', 'retinanet_ptnt_s_1x']
    code = f"""
import sys
sys.path.insert(0, 'tools')
PTNT_MM_REGISTERS_LATER = True
import reproduce
assert reproduce.main({words}) == reproduce.main(['experiments']) == 0
assert 'torch' not in sys.modules
"""
    subprocess.run([sys.executable, '-c', code], check=True, cwd=ROOT)


def test_flags_need_the_weights(capsys, tmp_path: Path):
    words = ('flags', 'retinanet_ptnt_s_1x', '--gpus', 8, '--weights', tmp_path)
    file = tmp_path / 'ptnt_s_82.0.pth.tar'
    status, _, errors = run(capsys, *words)
    assert status == 1 and f'{file} is missing' in errors and 'pan.baidu.com' in errors
    file.write_text('<!DOCTYPE html><html>')
    status, _, errors = run(capsys, *words)
    assert status == 1 and f'{file}: ' in errors
    torch.save({}, file)
    status, printed, _ = run(capsys, *words)
    assert (status, printed) == (0, f'--pretrained\n{file}\n--resume\n')


def test_collect_without_results_writes_the_committed_files(capsys, tmp_path: Path):
    status, printed, _ = run(capsys, 'collect', '--work-dirs', tmp_path, '--out', tmp_path)
    assert status == 0
    for name in ('docs/research/model_zoo.md', 'configs/metafile.yml'):
        assert (tmp_path / name).read_text() == (ROOT / name).read_text()
        assert f'wrote {tmp_path / name}' in printed


def test_collect_shows_the_last_checkpoints_of_finished_runs(capsys, tmp_path: Path, monkeypatch):
    """Their results are those of `ptnt test`, not those of the training log."""
    boxes = tmp_path / 'retinanet_ptnt_s_1x'
    # The last epoch counts over all resumes.
    write_log(boxes, '20260102_120000', evaluation(6, 0.5, 0.4), evaluation(7, 0.3))
    log = write_log(boxes, '20260101_120000', evaluation(5, 0.9, 0.9), evaluation(6, 0.1, 0.1))
    with log.open('a') as stream:  # by a process that was killed
        stream.write('{"coco/bbox_mAP": 0.')
    begun = write_log(tmp_path / 'retinanet_ptnt_ti_1x', '20260101_120000')
    begun.write_text('{"loss": 0.5, "step": 7}\n')
    no_objects = evaluation(1, 0.0) | {'coco/bbox_mAP_50': -1}
    write_log(tmp_path / 'retinanet_ptnt_m_1x', '20260101_120000', no_objects)
    maps = tmp_path / 'upernet_ptnt_s_80k_cityscapes'
    write_log(maps, '20260101_120000', map_evaluation(16_000, 30.04))
    write_log(tmp_path / 'mask_rcnn_ptnt_s_1x', '20260101_120000', evaluation(12, 0.4))
    words = ('collect', '--work-dirs', tmp_path, '--out', tmp_path)
    _, printed, _ = run(capsys, *words)
    assert 'retinanet_ptnt_s_1x: epoch 7 of 12, box AP 30.0, AP50 90.0\n' in printed
    assert 'retinanet_ptnt_m_1x: epoch 1 of 12, box AP 0.0\n' in printed
    assert 'retinanet_ptnt_ti_1x' not in printed
    assert f'{maps.name}: iteration 16000 of 80000, mIoU 30.0\n' in printed
    tests = tmp_path / 'mask_rcnn_ptnt_s_1x' / 'test'
    command = f'ptnt test mask_rcnn_ptnt_s_1x CHECKPOINT --work-dir {tests}'
    assert f'not on the page yet: {command}' in printed
    for time, score in (('20260102_100000', 0.1), ('20260103_100000', 0.35)):
        (tests / time).mkdir(parents=True)
        results = {'coco/bbox_mAP': score, 'coco/bbox_mAP_50': 0.6, 'coco/segm_mAP_75': 0.2}
        (tests / time / f'{time}.json').write_text(json.dumps(results))
    (tests / 'results').mkdir()
    (tests / 'results' / 'test.bbox.json').write_text('[]')  # outfile_prefix of the evaluator
    monkeypatch.setattr('reproduction.runs.cost', lambda entry: (50.04, 300.0))
    status, printed, _ = run(capsys, *words)
    assert status == 0 and 'not on the page' not in printed
    page = (tmp_path / 'docs' / 'research' / 'model_zoo.md').read_text()
    assert '| 12 | 35.0 | 60.0 | 20.0 | 50.0 | 300.0 |' in page
    assert '30.0 |' not in page and '40.0 |' not in page


def test_commands_of_all_networks(capsys):
    names = ('classifier_tnt_s_384_pets', 'classifier_cpvt_ti_300e_imagenet', 'detr_r50_peg_50e')
    status, printed, _ = run(capsys, 'commands', *names, '--gpus', 8)
    assert status == 0
    assert [
        f'train {name} --launcher pytorch --resume' in line
        for name, line in zip(names, printed.splitlines(), strict=True)
    ] == [True] * 3
    status, printed, _ = run(capsys, 'experiments')
    lines = printed.splitlines()
    assert status == 0 and len(set(lines)) == len(lines) == 100
    assert all(line.startswith(('ptnt train ', 'ptnt test ')) for line in lines)


@pytest.mark.parametrize('word', ['inner_heads=1', 'detr_tnt_s_50e', 'semantic_fpn_tnt_s_40k'])
def test_experiments_are_tried_on_the_demo_set(capsys, tmp_path: Path, monkeypatch, word: str):
    for folder in ('data/demo', 'data/demo_cls'):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    tried = []

    def train(config: Config, work_dir: Path, overwrite: bool) -> None:
        tried.append(config)
        if 'detr' in config.filename:
            raise UserError('no demo set')

    monkeypatch.setattr('reproduction.trial.train', train)
    status, printed, errors = run(capsys, 'try', word, '--work-dirs', tmp_path)
    (config,) = tried
    assert 'data/demo' in config.train_dataloader.dataset.data_root
    assert config.train_cfg.max_iters == config.train_dataloader.batch_size == 2
    assert config.model.backbone.get('init_cfg') is None
    if 'detr' in word:
        assert status == 1 and 'failed: no demo set' in printed and '1 experiments failed' in errors
    else:
        assert status == 0 and printed.endswith(': works\n')


def test_experiments_need_the_demo_set(capsys, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, printed, errors = run(capsys, 'try')
    assert status == 1 and not printed
    assert 'data/demo does not exist: create the demo set with `ptnt demo`' in errors


def test_an_unknown_config(capsys):
    status, _, errors = run(capsys, 'commands', 'retinanet_ptn_s_1x')
    assert status == 1 and "did you mean 'retinanet_ptnt_s_1x'" in errors
