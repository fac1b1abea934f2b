"""The command line of the model zoo, up to one short training."""

from pathlib import Path

import pytest

from reproduction import steps

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
    (found,) = steps.read(file).values()
    assert (found.images, found.size, found.device) == (2, '64x64', 'cpu')
    assert 0 < found.seconds_per_image < 60
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
    assert steps.read(file).keys() == {'semantic_fpn_ptnt_ti_ade20k'}


def test_plan_of_everything(capsys, tmp_path: Path):
    status, printed, _ = run(capsys, 'plan', '--times', tmp_path / 'none.json')
    assert status == 0
    assert printed.count('_ptnt_') == len(tool.entries())


def test_collect(capsys, tmp_path: Path):
    status, printed, _ = run(capsys, 'collect', '--work-dirs', tmp_path, '--out', tmp_path)
    assert status == 0
    for name in ('docs/model_zoo.md', 'configs/metafile.yml'):
        assert (tmp_path / name).read_text() == (ROOT / name).read_text()
        assert f'wrote {tmp_path / name}' in printed


def test_dry_run(capsys, tmp_path: Path):
    (tmp_path / 'ptnt_s_82.0.pth.tar').touch()
    places = ('--weights', tmp_path, '--work-dirs', tmp_path / 'runs')
    status, printed, _ = run(
        capsys, 'run', 'retinanet_ptnt_s_1x', '--gpus', 8, '--dry-run', *places
    )
    assert status == 0 and '--nproc_per_node 8' in printed
    assert not (tmp_path / 'runs').exists()


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
