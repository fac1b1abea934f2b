"""Limits of a page, and the comparison of runs."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ptnt_mm.workbench.pages.report import content, gallery
from ptnt_mm.workbench.pages.report.training_run import TrainingRun, read_run

from .made_runs import make_detector

SPOILT = [
    (Path.unlink, 'cannot be read: No such file'),
    (lambda file: file.write_bytes(file.read_bytes()[:-100]), 'cannot be read: .* truncated'),
    (lambda file: file.write_text('notes'), 'is not an image, or damaged'),
]


@pytest.fixture
def runs(tmp_path: Path) -> list[TrainingRun]:
    kinds = dict(boxes=('bbox',), masks=('bbox', 'segm'))
    return [read_run(make_detector(tmp_path, name, kinds[name]), name) for name in kinds]


def scale(chart: content.Chart) -> dict:
    """The names of a chart's lines, and their colours."""
    return chart.spec['layer'][0]['encoding']['color']['scale']


def test_curves_of_two_runs(runs: list[TrainingRun]):
    page = content.page_content(runs, {}, {})
    titles = [chart.title for chart in page['curves']]
    assert titles == [
        'Evaluation coco/bbox',
        'Loss',
        *('Parts of the loss: boxes', 'Parts of the loss: masks'),
        *('Learning rate', 'Seconds per iteration', 'GPU memory (MiB)'),
        'Evaluation coco/segm',
    ]
    # A run has the same colour in every chart.
    first, last = map(scale, page['curves'][::7])
    assert first['domain'] == ['boxes', 'masks'] and last['domain'] == ['masks']
    assert last['range'] == first['range'][1:] == [page['colours']['masks']]
    parts = scale(page['curves'][2])
    assert not set(parts['range']) & set(first['range']), 'a curve that is no run looks like none'
    assert {chart.title for chart in page['curves'] if chart.noisy} == {
        *('Loss', 'Parts of the loss: boxes', 'Parts of the loss: masks', 'Seconds per iteration')
    }


def test_many_losses_and_many_runs_have_a_colour_each(tmp_path: Path):
    work_dir = make_detector(tmp_path, 'run')
    (log,) = work_dir.glob('*/vis_data/scalars.json')
    losses = {f'loss_{i}': 0.1 for i in range(14)}
    log.write_text(json.dumps(dict(loss=1.4, **losses, epoch=1, step=10)) + '\n')
    runs = [read_run(work_dir, f'run {i}') for i in range(9)]
    page = content.page_content(runs, {}, {})
    (parts,) = (scale(c) for c in page['curves'] if c.title == 'Parts of the loss: run 8')
    used = [*page['colours'].values(), *parts['range']]
    assert len(parts['range']) == 14 and len(set(used)) == len(used) == 9 + 14


def test_ap_of_boxes_is_not_compared_with_that_of_masks(runs: list[TrainingRun]):
    reports = {run.name: run.read_report() for run in runs}
    page = content.page_content(runs, reports, {})
    assert page['compared'] == {'bbox'}
    ap = [c for c in page['tables']['classes'].columns if c.metric == 'AP']
    assert [column.heading for column in ap] == ['boxes: AP', 'masks: AP', 'difference']
    assert ap[0].cells == ap[1].cells, 'both have the same boxes'
    twelve = page['tables']['twelve'].columns
    assert [(column.run, column.heading) for column in twelve] == [
        ('boxes', 'boxes: boxes'), ('masks', 'masks: boxes'), ('masks', 'difference'),
        ('masks', 'masks: masks'),
    ]  # fmt: skip
    alone = content.page_content(runs[1:], {'masks': reports['masks']}, {})
    assert alone['compared'] == {'segm'}


def test_a_run_without_boxes_is_not_compared_with_one_without_masks(
    runs: list[TrainingRun], tmp_path: Path
):
    runs.append(read_run(make_detector(tmp_path, 'outlines', ('segm',)), 'outlines'))
    reports = {run.name: run.read_report() for run in runs}
    page = content.page_content(runs, reports, {})
    assert page['compared'] == {'bbox'}
    compared = {column.run for column in page['tables']['classes'].columns if column.run}
    assert compared == {'boxes', 'masks'}
    masks = [c.run for c in page['tables']['twelve'].columns if c.heading.endswith(': masks')]
    assert masks == ['masks', 'outlines'], 'AP of masks is compared there'


def test_configs_that_differ(runs: list[TrainingRun]):
    differences = dict(content.page_content(runs, {}, {})['differences'])
    assert differences == {'test_evaluator.metric': ["['bbox']", "['bbox', 'segm']"]}


def test_both_runs_say_something_of_every_image(runs: list[TrainingRun]):
    reports = {run.name: run.read_report() for run in runs}
    shown = content.page_content(runs, reports, {})['galleries'][0]
    assert [image['name'] for image in shown['images']] == ['2.jpg', '1.jpg'], 'the worst first'
    assert shown['images'][0]['width'] == 100 and shown['total'] == 2
    boxes, masks = shown['images'][0]['runs']
    assert 'outline' not in boxes['found'][0] and 'outline' in masks['found'][0]


def test_a_gallery_ends_where_the_page_is_full(runs: list[TrainingRun], monkeypatch):
    reports = {run.name: run.read_report() for run in runs}
    images = content.page_content(runs, reports, {})['galleries'][0]['images']
    data = gallery._MARKUP * len(json.dumps(images[0]['runs']))
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


def test_of_many_classes_the_most_confused_are_shown():
    """25 classes in pairs, of which the one in the middle is never confused."""
    counts = np.diag([9] * 25)
    for i in (*range(0, 12, 2), *range(13, 25, 2)):
        counts[i : i + 2, i : i + 2] = [[9, 1], [3, 0]]
    shown = content._most_confused([*'abcdefghijklmnopqrstuvwxy'], counts)
    assert (shown['names'], shown['left_out']) == ([*'abcdefghijklnopqrstuvwxy'], 1)
    assert shown['counts'][0][:3] == [9, 1, 0] and shown['shares'][0][:3] == [0.9, 0.1, 0]
    assert shown['counts'][-1][-2:] == [3, 0] and shown['shares'][-1][-2:] == [1, 0]
