"""A detector's report besides its scores: confusion, images and drawings."""

from pathlib import Path

import pytest

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.pages.report.training_run import read_run

from .made_runs import make_detector


def test_boxes(tmp_path: Path):
    report = read_run(make_detector(tmp_path, 'boxes'), 'boxes').read_report()
    names, counts = report.confusion
    assert names == ['ball', 'cup', 'background']
    # The cup is classified as a ball. There are also a duplicate and three other detections.
    assert counts.tolist() == [[1, 0, 2], [1, 0, 0], [3, 1, 0]]
    assert report.headline() == {'Box AP': report.scores.twelve['AP']}

    first, second = report.images()
    assert first.file == tmp_path / 'data' / '1.jpg' and first.file.is_file()
    assert first.cost == pytest.approx(0.8 + 0.7), 'both objects have a detection to fix'
    assert second.cost == pytest.approx(0.6 + 0.5 + 0.4 + 1), 'one is missed'
    details = report.details(second)
    assert [one['score'] for one in details['truths']] == [0.6, None]
    assert [one['kind'] for one in details['found']] == ['localisation', 'both', 'background']
    assert details['found'][0] == dict(
        label='ball', box=[0, 0, 20, 8], score=0.6, kind='localisation'
    )


def test_masks(tmp_path: Path):
    report = read_run(make_detector(tmp_path, 'masks', ('bbox', 'segm')), 'masks').read_report()
    assert [scores.kind for scores in report.all_scores] == ['bbox', 'segm']
    assert report.scores.kind == 'segm'
    assert report.confusion[1].tolist() == [[1, 0, 2], [1, 0, 0], [3, 1, 0]]
    worst = max(report.images(), key=lambda one: one.cost)
    outlines = [one['outline'] for one in report.details(worst)['found']]
    assert outlines[-1] == 'M90 0L90 4L94 4L94 0Z'


def test_annotations_that_are_elsewhere(tmp_path: Path):
    run = read_run(make_detector(tmp_path, 'boxes'), 'boxes')
    run.config.test_evaluator.ann_file = None
    report = run.read_report()
    assert report.scores.classes == {1: 'ball', 2: 'cup'}, "the data set's own file"
    run.config.test_dataloader.dataset.ann_file = 's3://bucket/val.json'
    with pytest.raises(UserError, match='has no local annotation file'):
        run.read_report()
