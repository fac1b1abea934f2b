"""The command line of the model zoo."""

from pathlib import Path

import torch
from logs import evaluation, write_log

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
    for name in ('docs/model_zoo.md', 'configs/metafile.yml'):
        assert (tmp_path / name).read_text() == (ROOT / name).read_text()
        assert f'wrote {tmp_path / name}' in printed


def test_collect_shows_finished_runs_alone_on_the_page(capsys, tmp_path: Path):
    write_log(tmp_path / 'retinanet_ptnt_s_1x', '20260101_120000', evaluation(7, 0.3))
    write_log(tmp_path / 'mask_rcnn_ptnt_s_1x', '20260101_120000', evaluation(12, 0.4))
    status, printed, _ = run(capsys, 'collect', '--work-dirs', tmp_path, '--out', tmp_path)
    assert status == 0
    assert 'retinanet_ptnt_s_1x: epoch 7 of 12, box AP 30.0' in printed
    page = (tmp_path / 'docs' / 'model_zoo.md').read_text()
    assert '| 12 | 40.0 |' in page and '30.0' not in page


def test_an_unknown_config(capsys):
    status, _, errors = run(capsys, 'commands', 'retinanet_s_1x')
    assert status == 1 and "did you mean 'retinanet_ptnt_s_1x'" in errors
