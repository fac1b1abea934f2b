"""How much a page shows, and how runs are compared."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('altair')
pytest.importorskip('vl_convert')
pytest.importorskip('sklearn')
pytest.importorskip('mmdet')

from ptnt_mm.report import content  # noqa: E402
from ptnt_mm.report.training_run import TrainingRun, read_run  # noqa: E402

from .made_runs import make_detector  # noqa: E402

SPOILT = [
    (Path.unlink, 'cannot be read: No such file'),
    (lambda file: file.write_bytes(file.read_bytes()[:-100]), 'cannot be read: .* truncated'),
    (lambda file: file.write_text('notes'), 'is not an image, or damaged'),
]


@pytest.fixture
def runs(tmp_path: Path) -> list[TrainingRun]:
    kinds = dict(boxes=('bbox',), masks=('bbox', 'segm'))
    return [read_run(make_detector(tmp_path, name, kinds[name]), name) for name in kinds]


def test_curves_of_two_runs(runs: list[TrainingRun]):
    page = content.page_content(runs, {}, {})
    titles = [title for title, _ in page['curves']]
    assert titles == [
        'Evaluation coco/bbox',
        'Loss',
        *('Parts of the loss: boxes', 'Parts of the loss: masks'),
        *('Learning rate', 'Seconds per iteration', 'Memory (MiB)'),
        'Evaluation coco/segm',
    ]
    # A run has the same colour in every chart.
    first, last = (
        spec['layer'][0]['encoding']['color']['scale'] for _, spec in page['curves'][::7]
    )
    assert first['domain'] == ['boxes', 'masks'] and last['domain'] == ['masks']
    assert last['range'] == first['range'][1:] == [page['colours']['masks']]
    parts = page['curves'][2][1]['layer'][0]['encoding']['color']['scale']
    assert not set(parts['range']) & set(first['range']), 'a curve that is no run looks like none'


def test_configs_that_differ(runs: list[TrainingRun]):
    differences = dict(content.page_content(runs, {}, {})['differences'])
    assert differences == {'test_evaluator.metric': ["['bbox']", "['bbox', 'segm']"]}


def test_both_runs_say_something_of_every_image(runs: list[TrainingRun]):
    reports = {run.name: run.read_report() for run in runs}
    gallery = content.page_content(runs, reports, {})['galleries'][0]
    assert [image['name'] for image in gallery['images']] == ['2.jpg', '1.jpg'], 'the worst first'
    assert gallery['images'][0]['width'] == 100 and gallery['total'] == 2
    boxes, masks = gallery['images'][0]['runs']
    assert 'outline' not in boxes['found'][0] and 'outline' in masks['found'][0]


def test_a_gallery_ends_where_the_page_is_full(runs: list[TrainingRun], monkeypatch):
    reports = {run.name: run.read_report() for run in runs}
    images = content.page_content(runs, reports, {})['galleries'][0]['images']
    data = content._MARKUP * len(json.dumps(images[0]['runs']))
    monkeypatch.setattr(content, '_MOST_BYTES', len(images[0]['picture']) + data + 10)
    assert content.page_content(runs, reports, {})['galleries'][0]['images'] == images[:1]


@pytest.mark.parametrize(('spoil', 'reason'), SPOILT)
def test_an_image_that_cannot_be_read_leaves_its_figures(
    runs: list[TrainingRun], tmp_path: Path, spoil: Callable, reason: str
):
    file = tmp_path / 'data' / '2.jpg'
    spoil(file)
    reports = {run.name: run.read_report() for run in runs}
    spoilt, whole = content.page_content(runs, reports, {})['galleries'][0]['images']
    assert re.match(f'{file} {reason}', spoilt['fault'])
    assert spoilt['picture'] is None and (spoilt['width'], spoilt['height']) == (100, 100)
    assert [len(run['found']) for run in spoilt['runs']] == [3, 3]
    assert whole['picture'] and 'fault' not in whole


def test_of_many_classes_the_most_confused_are_shown(monkeypatch):
    monkeypatch.setattr(content, '_MOST_CONFUSED', 2)
    counts = np.array([[9, 0, 1], [0, 5, 0], [3, 0, 0]])
    shown = content._most_confused(['a', 'b', 'c'], counts)
    assert (shown['names'], shown['left_out']) == (['a', 'c'], 1)
    assert shown['counts'] == [[9, 1], [3, 0]] and shown['shares'] == [[0.9, 0.1], [1, 0]]
