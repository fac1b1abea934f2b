"""The last evaluation in MMEngine's logs, and its metrics in percent."""

from pathlib import Path

from logs import evaluation, map_evaluation, write_log

from ptnt_mm.workbench.engine.scalar_logs import last_evaluation, metrics_in_percent

BOXES = {'AP': 'coco/bbox_mAP', 'AP small': 'coco/bbox_mAP_s', 'AP large': 'coco/bbox_mAP_l'}


def test_before_the_first_evaluation(tmp_path: Path):
    assert last_evaluation(tmp_path) is None
    write_log(tmp_path, '20260101_120000').write_text('{"loss": 0.5, "step": 7}\n')
    assert last_evaluation(tmp_path) is None


def test_the_last_epoch_counts_over_all_resumes(tmp_path: Path):
    write_log(tmp_path, '20260102_120000', evaluation(11, 0.5, 0.4), evaluation(12, 0.4))
    write_log(tmp_path, '20260101_120000', evaluation(10, 0.9, 0.9), evaluation(11, 0.1, 0.1))
    assert last_evaluation(tmp_path) == evaluation(12, 0.4)


def test_a_line_that_a_killed_process_left_unfinished(tmp_path: Path):
    log = write_log(tmp_path, '20260101_120000', evaluation(3, 0.2))
    with log.open('a') as stream:
        stream.write('{"coco/bbox_mAP": 0.')
    assert last_evaluation(tmp_path)['step'] == 3


def test_percent_of_fractions_without_what_cannot_be_evaluated():
    line = {**evaluation(12, 0.4312), 'coco/bbox_mAP_s': -1, 'coco/bbox_mAP_l': 0.0}
    assert metrics_in_percent(line, BOXES) == {'AP': 43.1, 'AP large': 0.0}


def test_other_hosts_log_percent():
    assert metrics_in_percent(map_evaluation(16_000, 30.04), {'mIoU': 'mIoU'}) == {'mIoU': 30.0}
    line = {'accuracy/top1': 75.21, 'step': 300}
    assert metrics_in_percent(line, {'top-1': 'accuracy/top1'}) == {'top-1': 75.2}
