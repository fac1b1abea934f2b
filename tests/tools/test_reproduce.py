"""The command line of the model zoo, up to one short training."""

from pathlib import Path

import pytest
from logs import evaluation, write_log

from reproduction.step_times import read_step_times

from .workplace import ROOT, load_tool

tool = load_tool('reproduce')

pytest.importorskip('mmdet')


def run(capsys, *arguments) -> tuple[int, str, str]:
    status = tool.main([*map(str, arguments)])
    return status, *capsys.readouterr()


def test_measure_then_plan(capsys, tmp_path: Path):
    file = tmp_path / 'times.json'
    times = ('--times', file)
    measure = ('measure', 'retinanet_ptnt_ti_1x', '--device', 'cpu', '--size', '64x64')
    status, printed, _ = run(capsys, *measure, '--steps', 1, *times)
    assert status == 0
    assert 's for 2 images of 64x64 on cpu; 12 epochs: ' in printed
    (found,) = read_step_times(file).values()
    assert (found.images, found.size, found.device) == (2, '64x64', 'cpu')
    assert 0 < found.seconds < 60
    _, printed, _ = run(capsys, 'plan', 'retinanet_ptnt_ti_1x', 'mask_rcnn_ptnt_b_3x', *times)
    assert '1 of 2 rows are empty' in printed and 'ptnt_b_84.1.pth.tar' in printed


def test_measure_a_segmenter(capsys, tmp_path: Path):
    pytest.importorskip('mmseg')
    file = tmp_path / 'times.json'
    name = 'semantic_fpn_ptnt_ti_40k_ade20k'
    measure = ('measure', name, '--device', 'cpu', '--size', '64x96', '--steps', 1)
    status, printed, _ = run(capsys, *measure, '--times', file)
    assert status == 0
    assert 's for 4 images of 64x96 on cpu; 40,000 iterations: ' in printed
    assert read_step_times(file).keys() == {'semantic_fpn_ptnt_ti_ade20k'}


def test_plan_of_everything(capsys, tmp_path: Path):
    status, printed, _ = run(capsys, 'plan', '--times', tmp_path / 'none.json')
    assert status == 0
    assert printed.count('_ptnt_') == len(tool.list_entries())


def test_collect(capsys, tmp_path: Path):
    status, printed, _ = run(capsys, 'collect', '--work-dirs', tmp_path, '--out', tmp_path)
    assert status == 0
    for name in ('docs/model_zoo.md', 'configs/metafile.yml'):
        assert (tmp_path / name).read_text() == (ROOT / name).read_text()
        assert f'wrote {tmp_path / name}' in printed


def test_dry_run_skips_what_is_finished(capsys, tmp_path: Path):
    (tmp_path / 'ptnt_s_82.0.pth.tar').touch()
    work_dirs = tmp_path / 'runs'
    write_log(work_dirs / 'mask_rcnn_ptnt_s_1x', '20260101_120000', evaluation(12, 0.4))
    names = ('retinanet_ptnt_s_1x', 'mask_rcnn_ptnt_s_1x')
    places = ('--weights', tmp_path, '--work-dirs', work_dirs)
    status, printed, _ = run(capsys, 'run', *names, '--gpus', 8, '--dry-run', *places)
    assert status == 0
    retinanet, mask_rcnn, command = printed.splitlines()
    assert retinanet == '# retinanet_ptnt_s_1x: nothing yet'
    assert mask_rcnn == '# mask_rcnn_ptnt_s_1x: epoch 12 of 12, box AP 40.0'
    assert '--nproc_per_node 8 ' in command and '/retinanet_ptnt_s_1x.py ' in command
    assert [folder.name for folder in work_dirs.iterdir()] == ['mask_rcnn_ptnt_s_1x']


def test_weights_are_looked_for_before_anything_starts(capsys, tmp_path: Path, monkeypatch):
    (tmp_path / 'ptnt_s_82.0.pth.tar').touch()
    monkeypatch.setattr(tool, 'run_trainings', lambda *_: pytest.fail('a training was started'))
    places = ('--weights', tmp_path, '--work-dirs', tmp_path)
    status, _, errors = run(capsys, 'run', 'retinanet_ptnt_s_1x', 'retinanet_ptnt_m_1x', *places)
    assert status == 1 and 'ptnt_m_83.5.pth.tar is missing' in errors


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (('plan', 'retinanet_s_1x'), "did you mean 'retinanet_ptnt_s_1x'"),
        (('run', 'retinanet_ptnt_s_1x', '--weights', 'nowhere'), 'nowhere/ptnt_s_82.0.pth.tar is'),
    ],
)
def test_bad_input(capsys, arguments, message):
    status, _, errors = run(capsys, *arguments)
    assert status == 1 and message in errors
