"""Reading what trainings left."""

from pathlib import Path

import pytest
from logs import evaluation, map_evaluation, write_log

from ptnt_mm.utils.errors import UserError
from reproduction.entries import find_entries
from reproduction.progress import read_progress

pytest.importorskip('mmdet')

RETINANET, MASK_RCNN, UPERNET = find_entries(
    ['retinanet_ptnt_s_1x', 'mask_rcnn_ptnt_s_1x', 'upernet_ptnt_s_160k_ade20k']
)


def test_nothing_was_run(tmp_path: Path):
    progress = read_progress(RETINANET, tmp_path)
    assert (progress.done, progress.figures) == (0, {})
    assert str(progress) == 'retinanet_ptnt_s_1x: nothing yet'


def test_an_unfinished_training_has_figures_that_do_not_count(tmp_path: Path):
    write_log(tmp_path / RETINANET.name, '20260101_120000', evaluation(7, 0.3))
    progress = read_progress(RETINANET, tmp_path)
    assert not progress.finished and progress.measured == {}
    assert str(progress) == 'retinanet_ptnt_s_1x: epoch 7 of 12, box AP 30.0'


def test_the_last_epoch_counts_over_all_resumes(tmp_path: Path):
    folder = tmp_path / MASK_RCNN.name
    write_log(folder, '20260102_120000', evaluation(11, 0.5, 0.4), evaluation(12, 0.4312, 0.3987))
    write_log(folder, '20260101_120000', evaluation(10, 0.9, 0.9), evaluation(11, 0.1, 0.1))
    progress = read_progress(MASK_RCNN, tmp_path)
    assert progress.finished
    assert progress.measured == {'box AP': 43.1, 'mask AP': 39.9}


def test_boxes_are_also_collected_by_size(tmp_path: Path):
    sizes = {'coco/bbox_mAP_s': 0.2501, 'coco/bbox_mAP_m': -1, 'coco/bbox_mAP_l': 0.577}
    write_log(tmp_path / RETINANET.name, '20260101_120000', {**evaluation(12, 0.42), **sizes})
    progress = read_progress(RETINANET, tmp_path)
    # The medium one is COCO's mark for no object of a size.
    assert progress.measured == {'box AP': 42.0, 'AP small': 25.0, 'AP large': 57.7}
    assert str(progress).endswith('epoch 12 of 12, box AP 42.0, AP small 25.0, AP large 57.7')


def test_a_segmenters_evaluations_are_counted_in_iterations(tmp_path: Path):
    folder = tmp_path / UPERNET.name
    write_log(folder, '20260101_120000', map_evaluation(16_000, 30.04))
    progress = read_progress(UPERNET, tmp_path)
    assert str(progress) == 'upernet_ptnt_s_160k_ade20k: iteration 16000 of 160000, mIoU 30.0'
    assert progress.measured == {}
    write_log(folder, '20260102_120000', map_evaluation(160_000, 45.66))
    assert read_progress(UPERNET, tmp_path).measured == {'mIoU': 45.7}


def test_a_line_that_a_killed_process_left_unfinished(tmp_path: Path):
    log = write_log(tmp_path / RETINANET.name, '20260101_120000', evaluation(3, 0.2))
    with log.open('a') as stream:
        stream.write('{"coco/bbox_mAP": 0.')
    assert read_progress(RETINANET, tmp_path).done == 3
    with log.open('a') as stream:
        stream.write('\n{"step": 1}\n')
    with pytest.raises(UserError, match='scalars.json, line 3, is not what MMEngine logs'):
        read_progress(RETINANET, tmp_path)
