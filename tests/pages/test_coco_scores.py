"""COCO's numbers, and the errors for files without any."""

from pathlib import Path

import pytest

from ptnt_mm.utils.errors import UserError

from .made_runs import report_of_detector, results


def test_figures_of_classes_and_their_curves(tmp_path: Path):
    report = report_of_detector(tmp_path, results('bbox'))
    ball, cup = report.of_classes()
    assert (ball['Class'], ball['objects'], cup['objects']) == ('ball', 3, 1)
    assert ball['AP50'] == pytest.approx(34 / 101) and cup['AP'] == 0
    assert ball['small'] == pytest.approx(34 / 101)
    assert ball['medium'] is None, 'there are none'
    twelve = report.numbers()['boxes']
    assert twelve['AP50'] == pytest.approx(17 / 101) and len(twelve) == 12
    points = [p for p in report.scores.curves() if p['Class'] == 'ball']
    assert len(points) == 51
    assert [p['precision'] for p in points] == [1] * 17 + [0] * 34
    both = [p['precision'] for p in report.scores.curves() if p['Class'] == 'all']
    assert both == [0.5] * 17 + [0] * 34


def test_masks_count_by_their_own_area(tmp_path: Path):
    # The box of a thin diagonal would be medium.
    found = results('segm', [(1, 'ball', (0, 0, 10, 10), 0.9)])
    found[0]['bbox'] = [0, 0, 60, 60]
    twelve = report_of_detector(tmp_path, found, 'segm').numbers()['masks']
    assert twelve['AP small'] == twelve['AP'] > 0


def only(name: str) -> dict:
    return {'test_dataloader.dataset.metainfo': dict(classes=(name,))}


def test_only_the_classes_that_are_named_count(tmp_path: Path):
    report = report_of_detector(tmp_path, results('bbox'), **only('cup'))
    assert report.names == ['cup'] and report.headline() == {'Box AP': 0}


@pytest.mark.parametrize('kind', ['CocoMetric', 'DenseCocoMetric'])
def test_nothing_was_found(tmp_path: Path, kind: str):
    twelve = report_of_detector(tmp_path, [], **{'test_evaluator.type': kind}).numbers()['boxes']
    assert twelve['AP'] == 0 and twelve['AP large'] is None


def test_more_than_a_hundred_detections_of_an_image_can_count(tmp_path: Path):
    false = [(1, 'ball', (0, 0, 1, 1), 0.9)] * 120
    found = results('bbox', [*false, (1, 'ball', (0, 0, 10, 10), 0.5)])
    (tmp_path / 'every').mkdir()
    limited, every = (
        report_of_detector(tmp_path / folder, found, **{'test_evaluator.type': kind})
        for folder, kind in (('', 'CocoMetric'), ('every', 'DenseCocoMetric'))
    )
    assert limited.headline()['Box AP'] == 0 < every.headline()['Box AP']
    assert 'AR, 121 per image' in every.numbers()['boxes']


@pytest.mark.parametrize('found', [{'images': []}, [dict(score=1)], 'text'])
def test_other_files_are_no_results(tmp_path: Path, found):
    message = r'bbox\.json does not contain results for these images'
    with pytest.raises(UserError, match=message):
        report_of_detector(tmp_path, found)


def test_results_of_other_images(tmp_path: Path):
    other = results('bbox', [(7, 'ball', (0, 0, 9, 9), 0.9)])
    with pytest.raises(UserError, match='does not contain results for these images.*Delete it'):
        report_of_detector(tmp_path, other)


def test_no_ground_truth(tmp_path: Path):
    (tmp_path / 'other').mkdir()
    with pytest.raises(UserError, match='has no objects of saucer'):
        report_of_detector(tmp_path, [], **only('saucer'))
    with pytest.raises(UserError, match=r'val\.json cannot be read'):
        report_of_detector(tmp_path / 'other', [], truth=[])
