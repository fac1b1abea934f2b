"""COCO's numbers, and the errors for files without any."""

import json
from pathlib import Path

import pytest

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.pages.report.coco_scores import read_annotations, score_results

from .made_runs import annotations, results


@pytest.fixture
def truth(tmp_path: Path):
    file = tmp_path / 'truth.json'
    file.write_text(json.dumps(annotations()))
    return read_annotations(file)


def write(folder: Path, content: object) -> Path:
    file = folder / 'found.json'
    file.write_text(json.dumps(content))
    return file


def test_figures_of_classes_and_their_curves(tmp_path: Path, truth):
    scores = score_results(truth, write(tmp_path, results('bbox')), 'bbox')
    ball, cup = scores.of_classes()
    assert (ball['Class'], ball['objects'], cup['objects']) == ('ball', 3, 1)
    assert ball['AP50'] == pytest.approx(34 / 101) and cup['AP'] == 0
    assert ball['small'] == pytest.approx(34 / 101)
    assert ball['medium'] is None, 'there are none'
    assert scores.twelve['AP50'] == pytest.approx(17 / 101) and len(scores.twelve) == 12
    points = [p for p in scores.curves() if p['Class'] == 'ball']
    assert len(points) == 51
    assert [p['precision'] for p in points] == [1] * 17 + [0] * 34
    both = [p['precision'] for p in scores.curves() if p['Class'] == 'all']
    assert both == [0.5] * 17 + [0] * 34


def test_masks_count_by_their_own_area(tmp_path: Path, truth):
    # The box of a thin diagonal would be medium.
    found = results('segm', [(1, 'ball', (0, 0, 10, 10), 0.9)])
    found[0]['bbox'] = [0, 0, 60, 60]
    scores = score_results(truth, write(tmp_path, found), 'segm')
    assert scores.twelve['AP small'] == scores.twelve['AP'] > 0


def test_only_the_classes_that_are_named_count(tmp_path: Path, truth):
    scores = score_results(truth, write(tmp_path, results('bbox')), 'bbox', ['cup'])
    assert scores.classes == {2: 'cup'} and scores.twelve['AP'] == 0


@pytest.mark.parametrize('limit', [100, None])
def test_nothing_was_found(tmp_path: Path, truth, limit: int | None):
    scores = score_results(truth, write(tmp_path, []), 'bbox', limit=limit)
    assert scores.twelve['AP'] == 0 and scores.twelve['AP large'] is None


def test_more_than_a_hundred_detections_of_an_image_can_count(tmp_path: Path, truth):
    box = truth.anns[1]['bbox']
    false = [(1, 'ball', (0, 0, 1, 1), 0.9)] * 120
    file = write(tmp_path, results('bbox', [*false, (1, 'ball', tuple(box), 0.5)]))
    limited, every = (score_results(truth, file, 'bbox', limit=limit) for limit in (100, None))
    assert limited.twelve['AP'] == 0 < every.twelve['AP']
    assert 'AR, 121 per image' in every.twelve


@pytest.mark.parametrize('found', [{'images': []}, [dict(score=1)], 'text'])
def test_other_files_are_no_results(tmp_path: Path, truth, found):
    with pytest.raises(UserError, match=r'found\.json does not contain results for these images'):
        score_results(truth, write(tmp_path, found), 'bbox')


def test_results_of_other_images(tmp_path: Path, truth):
    other = results('bbox', [(7, 'ball', (0, 0, 9, 9), 0.9)])
    with pytest.raises(UserError, match='does not contain results for these images.*Delete it'):
        score_results(truth, write(tmp_path, other), 'bbox')


def test_no_ground_truth(tmp_path: Path, truth):
    with pytest.raises(UserError, match='has no objects of saucer'):
        score_results(truth, write(tmp_path, []), 'bbox', ['saucer'])
    (tmp_path / 'truth.json').write_text('[]')
    with pytest.raises(UserError, match=r'truth\.json cannot be read'):
        read_annotations(tmp_path / 'truth.json')
