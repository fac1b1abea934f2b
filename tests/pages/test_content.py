"""The comparison of runs on a report's page, and its limits."""

import html
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from pycocotools import mask as coco_mask

from .made_runs import FOUND, TRUTHS, annotations, make_detector, make_segmenter, results
from .shown import cards, cells, colours, curves, report, table

KINDS = dict(boxes=('bbox',), masks=('bbox', 'segm'), outlines=('segm',))


@pytest.fixture(scope='module')
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """That of three runs, of which one has boxes and masks."""
    folder = tmp_path_factory.mktemp('three')
    runs = (make_detector(folder, name, kinds) for name, kinds in KINDS.items())
    return report(folder / 'page.html', *runs)


def headings(page: str, name: str, metric: str = '') -> list[str]:
    """Those of the columns of a metric, and of the differences beside them."""
    found = [heading for heading, _ in table(page, name)[1:]]
    return [
        heading
        for before, heading in zip(['', *found], found, strict=False)
        if (before if heading == 'difference' else heading).endswith(metric)
    ]


def test_curves_of_three_runs(page: str):
    charts = curves(page)
    parts_of_losses = [f'Parts of the loss: {run}' for run in KINDS]
    assert [chart.title for chart in charts] == [
        *('Evaluation coco/bbox', 'Loss', *parts_of_losses),
        *('Learning rate', 'Seconds per iteration', 'GPU memory (MiB)', 'Evaluation coco/segm'),
    ]
    # A run has the same colour in every chart.
    assert list(charts[0].lines) == ['boxes', 'masks']
    assert list(charts[-1].lines) == ['masks', 'outlines']
    assert charts[0].lines | charts[-1].lines == colours(page)
    parts = charts[2].lines.values()
    assert not {*parts} & {*colours(page).values()}, 'a curve that is no run looks like none'
    assert [chart.title for chart in charts if chart.is_noisy] == [
        *('Loss', *parts_of_losses, 'Seconds per iteration')
    ]


def test_many_losses_and_many_runs_have_a_colour_each(tmp_path: Path):
    work_dir = make_detector(tmp_path, 'run 0')
    (log,) = work_dir.glob('*/vis_data/scalars.json')
    losses = {f'loss_{i}': 0.1 for i in range(14)}
    log.write_text(json.dumps(dict(loss=1.4, **losses, epoch=1, step=10)) + '\n')
    (work_dir / 'predictions.bbox.json').unlink()
    others = [shutil.copytree(work_dir, tmp_path / f'run {i}') for i in range(1, 9)]
    page = report(tmp_path / 'page.html', work_dir, *others)
    (parts,) = (c.lines for c in curves(page) if c.title == 'Parts of the loss: run 8')
    used = [*colours(page).values(), *parts.values()]
    assert len(parts) == 14 and len(set(used)) == len(used) == 9 + 14


def test_ap_of_boxes_is_not_compared_with_that_of_masks(page: str):
    assert '<p>AP of boxes.' in page
    assert headings(page, 'classes', ': AP') == ['boxes: AP', 'masks: AP', 'difference']
    boxes, masks = (cells(page, 'classes', f'{run}: AP') for run in ('boxes', 'masks'))
    assert boxes == masks, 'both have the same boxes'
    assert headings(page, 'twelve') == [
        *('boxes: boxes', 'masks: boxes', 'difference'),
        *('masks: masks', 'outlines: masks', 'difference'),
    ]


def test_configs_that_differ(page: str):
    _, _, differences = page.partition('Settings that differ: 1<')
    assert html.unescape(differences.partition('</table>')[0]).count("'bbox'") == 2
    assert '<code>test_evaluator.metric</code>' in differences


def test_all_runs_say_something_of_every_image(page: str):
    worst, other = cards(page)
    assert '<b>2.jpg</b>' in worst and '<b>1.jpg</b>' in other
    assert 'viewBox="0 0 100 100"' in worst and 'data-of="2 worst of 2 images"' in page
    has_outlines = ['<path' in panel for panel in worst.split('data-run=')[1:]]
    assert has_outlines == [False, True, True]


def test_a_gallery_ends_where_the_page_is_full(tmp_path: Path):
    work_dir = make_detector(tmp_path, 'run', ('segm',))
    # So many outlines that those of two images have no room.
    dots = np.zeros((100, 100), np.uint8, 'F')
    dots[::2, ::2] = 1
    counts = coco_mask.encode(dots)['counts'].decode()
    truth = annotations([(image, 'ball', (0, 0, 99, 99)) for image in (1, 2) for _ in range(10)])
    found = results('segm', [(i, 'ball', (0, 0, 99, 99), 0.9) for i in (1, 2) for _ in range(40)])
    for entry in (*truth['annotations'], *found):
        entry['segmentation'] = dict(size=[100, 100], counts=counts)
    (tmp_path / 'data' / 'val.json').write_text(json.dumps(truth))
    (work_dir / 'predictions.segm.json').write_text(json.dumps(found))
    page = report(tmp_path / 'page.html', work_dir)
    assert len(cards(page)) == 1 and 'data-of="1 worst of 2 images"' in page
    assert '<p>AP of masks.' in page and headings(page, 'classes', 'AP') == ['AP']
    assert '<select data-table="classes">' not in page, 'there is nothing to compare'


def test_images_that_cannot_be_read_leave_their_figures(tmp_path: Path):
    work_dir, data = make_detector(tmp_path, 'run'), tmp_path / 'data'
    (data / '1.jpg').unlink()
    (data / '2.jpg').write_bytes((data / '2.jpg').read_bytes()[:-100])
    page = report(tmp_path / 'page.html', work_dir)
    for name, reason in (('1.jpg', 'No such file'), ('2.jpg', '.* truncated')):
        assert re.search(f'<p>{data / name} cannot be read: {reason}', page)
    worst, _ = cards(page)
    assert '<use' not in worst and 'viewBox="0 0 100 100"' in worst
    assert len(re.findall('data-score="0.[456]"', worst)) == 4


def test_of_many_classes_the_most_confused_are_shown(tmp_path: Path):
    """25 classes in pairs, of which the one in the middle is never confused."""
    counts = np.diag([9] * 25)
    for i in (*range(0, 12, 2), *range(13, 25, 2)):
        counts[i : i + 2, i : i + 2] = [[9, 1], [3, 0]]
    pixels = np.repeat(np.indices((25, 25)).reshape(2, 1, -1), counts.ravel(), axis=2)
    maps = np.tile(pixels, (1, 2, 1)).astype(np.uint8)[:, None]
    names = [*'abcdefghijklmnopqrstuvwxy']
    page = report(tmp_path / 'page.html', make_segmenter(tmp_path, 'maps', *maps, classes=names))
    matrix = page.partition('<table class="matrix">')[2].partition('</table>')[0]
    assert re.findall('<th scope="row">(.)</th>', matrix) == [*'abcdefghijklnopqrstuvwxy']
    assert '24 classes with the most confusion; 1 are omitted' in matrix
    shown = dict(re.findall('title="(. as .: \\d+)">(\\d*)<', matrix))
    assert [shown[cell] for cell in ('a as a: 18', 'a as b: 2', 'a as c: 0', 'y as x: 6')] == [
        *('90', '10', '', '100')
    ]


def test_differences_are_to_the_first_run_and_have_a_direction(tmp_path: Path):
    good, bad, best = (make_detector(tmp_path, name) for name in ('good', 'bad', 'best'))
    right = [(*truth, 0.9) for truth in TRUTHS]
    for work_dir, found in ((good, [*FOUND[:2], right[1]]), (best, right)):
        (work_dir / 'predictions.bbox.json').write_text(json.dumps(results('bbox', found)))
    page = report(tmp_path / 'page.html', good, bad, best)
    (_, names), *columns = table(page, 'twelve')
    assert [(title, *column[0]) for title, column in columns] == [
        ('good: boxes', '0.668', ''),
        ('bad: boxes', '0.168', ''),
        ('difference', '−0.500', 'worse'),
        ('best: boxes', '1.000', ''),
        ('difference', '+0.332', 'better'),
    ]
    large = [name.text for name in names].index('AP large')
    assert {column[large] for _, column in columns} == {('–', '')}
    (_, names), *columns = table(page, 'kinds')
    background = [name.text for name in names].index('background')
    assert ('difference', ('+1', 'worse')) in [(t, column[background]) for t, column in columns]


def test_classes_of_all_runs_share_a_table(tmp_path: Path):
    truth = np.array([[[0, 0, 1, 1], [0, 0, 1, 1]]], np.uint8)
    first = make_segmenter(tmp_path, 'first', truth, truth[..., ::-1], classes=('ball', 'cup'))
    second = make_segmenter(tmp_path, 'second', truth, truth, classes=('cup', 'saucer'))
    page = report(tmp_path / 'page.html', first, second)
    assert list(cells(page, 'regions', 'first: IoU')) == ['ball', 'cup', 'saucer']
    for run, texts in (('first', ['0.0 %', '0.0 %', '–']), ('second', ['–', '100.0 %', '100.0 %'])):
        assert [cell.text for cell in cells(page, 'regions', f'{run}: IoU').values()] == texts
    assert cells(page, 'regions', 'first: pixels')['saucer'].text == '–', 'the data sets differ'
    changes = [column[1] for title, column in table(page, 'regions') if title == 'difference']
    assert ('+100.0 %', 'better') in changes and ('0.0 %', '') in changes
