"""Training and evaluating a segmenter from the command line."""

import pickle
import re
from pathlib import Path

import mmseg
import numpy as np
import pytest
import torch
from PIL import Image

from ptnt_mm.utils.versions import provider

from .workplace import Training, Workplace, ious


def _mmseg_tool(name: str) -> Path:
    return Path(mmseg.__file__).parent / '.mim' / 'tools' / name


def test_a_run_prints_what_matters(segmentation: Training):
    output = segmentation.output
    assert 'Effective batch: 4 images x 1 process x 1 step = 4' in output
    assert 'NO PRETRAINED WEIGHTS' in output
    assert re.search(r'^iteration  2/40  loss [\d.]+  [\d.]+ images/s  \d+ s left$', output, re.M)
    assert re.search(r'^checkpoint +maps/iter_40.pth$', output, re.M)
    assert re.search(r'^curves +maps/curves.png$', output, re.M)
    assert re.search(r'^class +IoU +Acc\n', output, re.M)
    assert (segmentation.run / 'curves.png').read_bytes().startswith(b'\x89PNG')


def test_test_gives_the_figures_of_the_run(workplace: Workplace, segmentation: Training):
    done = workplace.run(
        'test.py', segmentation.config, segmentation.checkpoint, '--work-dir', 'maps-test',
        '--show-dir', 'maps-shown', '--out', 'maps.pkl',
        '--cfg-options', 'test_evaluator.output_dir=maps-found',
    )  # fmt: skip
    assert ious(done.stdout) == ious(segmentation.output)
    assert ious(done.stdout)[1] > 0.25, 'of five classes, with some of four found'
    assert len(list((workplace.folder / 'maps-shown').rglob('*.png'))) == 10
    assert (workplace.folder / 'maps.pkl').is_file()
    maps = sorted((workplace.folder / 'maps-found').glob('*.png'))
    assert len(maps) == 10
    assert np.asarray(Image.open(maps[0])).max() < 5


def test_a_report_evaluates_what_was_not_evaluated(workplace: Workplace, segmentation: Training):
    done = workplace.run('report.py', 'maps')
    _, miou = ious(segmentation.output)
    assert not (segmentation.run / 'predictions').exists()  # it writes nothing but its page
    assert done.stdout.strip().endswith('Done. Page: maps/report.html')
    assert f'<dd>{100 * miou:.1f} %</dd>' in (segmentation.run / 'report.html').read_text()


@pytest.mark.skipif(
    provider('mmsegmentation') != 'mmsegmentation', reason='MMEngine does not find mmseg:: bases'
)
def test_mmsegs_own_tools_run_our_configs(workplace: Workplace, segmentation: Training):
    few = ('train_cfg.max_iters=2', 'train_cfg.val_interval=2', 'train_dataloader.batch_size=2')
    args = (segmentation.config, '--work-dir', 'mmseg', '--cfg-options', *few)
    workplace.run(_mmseg_tool('train.py'), *args)
    assert (workplace.folder / 'mmseg' / 'iter_2.pth').is_file()
    tested = workplace.run(
        _mmseg_tool('test.py'), segmentation.config, segmentation.checkpoint,
        '--work-dir', 'mmseg-test',
    )  # fmt: skip
    logged = [re.search(rf'{key}: (\S+)', tested.stdout)[1] for key in ('aAcc', 'mIoU')]
    # Both round, to different digits.
    expected = [float(value) / 100 for value in logged]
    assert ious(segmentation.output) == pytest.approx(expected, abs=6e-4)


def test_windows_slide_by_one_setting(workplace: Workplace, segmentation: Training):
    done = workplace.run(
        'test.py', segmentation.config, segmentation.checkpoint, '--work-dir', 'maps-slide',
        '--cfg-options', 'model.test_cfg.mode=slide',
    )  # fmt: skip
    whole, slid = ious(segmentation.output), ious(done.stdout)
    assert slid != whole and abs(slid[1] - whole[1]) < 15


def test_test_time_augmentation(workplace: Workplace, segmentation: Training):
    done = workplace.run(
        'test.py', segmentation.config, segmentation.checkpoint, '--work-dir', 'maps-tta',
        '--tta', '--out', 'averaged.pkl',
    )  # fmt: skip
    plain, averaged = ious(segmentation.output), ious(done.stdout)
    assert averaged != plain and abs(averaged[1] - plain[1]) < 15
    # The averaged maps are kept: they give the same figure.
    with (workplace.folder / 'averaged.pkl').open('rb') as stream:
        found = pickle.load(stream)
    assert len(found) == 10 and found[0]['pred_sem_seg'].dtype == torch.uint8
    areas = [_areas(workplace.folder / one['img_path'], one['pred_sem_seg']) for one in found]
    intersection, union = np.sum(areas, axis=0)
    assert (intersection / union).mean() == pytest.approx(averaged[1], abs=0.001)


def test_an_earlier_checkpoint(workplace: Workplace, segmentation: Training):
    done = workplace.run(
        'test.py', segmentation.config, segmentation.run / 'iter_20.pth', '--work-dir', 'maps-20'
    )
    lines = [line for line in segmentation.output.splitlines() if 'evaluation  mIoU' in line]
    assert ious(done.stdout) == ious(lines[0]) != ious(lines[-1])


def _areas(image: Path, labels: torch.Tensor) -> np.ndarray:
    """Pixels of intersection and union with the truth, (2, 5)."""
    truth = np.asarray(Image.open(image.parents[1] / 'semantic' / 'train' / f'{image.stem}.png'))
    pairs = [(labels[0].numpy() == label, truth == label) for label in range(5)]
    return np.array([[(a & b).sum() for a, b in pairs], [(a | b).sum() for a, b in pairs]])
