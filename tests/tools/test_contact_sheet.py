"""Contact sheets of the demo."""

import json

import numpy as np
import pytest
from drawn_figures import catch_figures
from logs import evaluation, write_log
from PIL import Image

from demo import contact_sheet
from demo.contact_sheet import draw_detections, draw_maps
from ptnt_mm.drawing import figures

from .workplace import load_tool


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.fixture
def coco(tmp_path):
    """Five grey pictures with one object each; results that miss the last."""
    images, annotations, results = [], [], []
    for number in range(1, 6):
        size = (40, 60) if number % 2 else (60, 40)
        (tmp_path / 'val').mkdir(exist_ok=True)
        Image.new('RGB', size, (90, 90, 90)).save(tmp_path / 'val' / f'{number}.jpg')
        images.append(dict(id=number, file_name=f'{number}.jpg', width=size[0], height=size[1]))
        box = [5, 6, 20, 18]
        annotations.append(dict(id=number, image_id=number, category_id=3, bbox=box, area=360))
        if number < 5:
            results.append(dict(image_id=number, category_id=3, bbox=box, score=0.2 * number))
    write(
        tmp_path / 'val.json',
        dict(
            images=images,
            annotations=annotations,
            categories=[dict(id=3, name='cup'), dict(id=7, name='ball')],
        ),
    )
    write(tmp_path / 'val.bbox.json', results)
    return tmp_path


def draw(folder, **settings):
    return draw_detections(
        folder / 'val.json', folder / 'val', folder / 'val.bbox.json', folder / 'a.png', **settings
    )


@pytest.fixture
def drawn(monkeypatch) -> list:
    return catch_figures(monkeypatch, contact_sheet)


# ---- Contact sheet of a detector


def test_sheet_shows_truth_beside_predictions_above_the_threshold(coco, drawn):
    assert draw(coco, score_thr=0.5) == coco / 'a.png'
    axes = drawn[0].axes
    assert len(axes) == 10
    assert [len(one.patches) for one in axes[0::2]] == [1, 1, 1, 1, 1]
    assert [len(one.patches) for one in axes[1::2]] == [0, 0, 1, 1, 0]
    assert [text.get_text() for text in axes[7].texts] == ['cup 0.80']
    box = axes[0].patches[0]
    assert (box.get_x(), box.get_y(), box.get_width(), box.get_height()) == (4.5, 5.5, 20, 18)
    assert box.get_edgecolor()[:3] == axes[5].patches[0].get_edgecolor()[:3] == figures.colour(0)
    legend = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert legend == ['cup'], 'only classes that occur'


def test_sheet_spreads_over_the_data_set(coco, drawn):
    draw(coco, num_images=3)
    titles = [axes.get_title(loc='left').split()[0] for axes in drawn[0].axes[0::2]]
    assert titles == ['1.jpg', '3.jpg', '5.jpg']


def test_sheet_without_any_prediction_is_drawn(coco):
    write(coco / 'val.bbox.json', [])
    with Image.open(draw(coco)) as image:
        assert min(image.size) > 300
    assert not list(coco.glob('.a.png*')), 'no partial file is left'


def test_masks_are_drawn_where_every_result_has_one(coco, drawn):
    square = [[5, 6, 25, 6, 25, 24, 5, 24]]
    results = json.loads((coco / 'val.bbox.json').read_text())
    write(coco / 'val.bbox.json', [dict(one, segmentation=square) for one in results])
    draw(coco)
    tint = drawn[0].axes[5].images[1].get_array()  # of the third picture's predictions
    assert np.array_equal(tint[6:24, 5:25, 3] > 0, np.ones((18, 20), bool)) and tint[5, 4, 3] == 0
    results[0]['segmentation'] = square
    write(coco / 'val.bbox.json', results)
    draw(coco)
    assert all(len(axes.images) == 1 for axes in drawn[1].axes)


# ---- Contact sheet of a segmenter

COLOURS = {'ground': (0.0, 0.0, 0.0), 'cup': (1.0, 0.5, 0.0)}


@pytest.fixture
def maps(tmp_path):
    """Five pictures whose lower half is a cup; the last column does not count."""
    truth = np.zeros((40, 60), np.uint8)
    truth[20:] = 1
    found = truth.copy()
    found[:10] = 1
    truth[:, -1] = 255
    for number in range(5):
        save(tmp_path / 'val' / f'{number}.jpg', np.full((40, 60, 3), 90, np.uint8))
        save(tmp_path / 'truth' / f'{number}.png', truth)
        save(tmp_path / 'found' / f'{number}.png', truth if number == 4 else found)
    return tmp_path


def save(path, pixels):
    path.parent.mkdir(exist_ok=True)
    Image.fromarray(pixels).save(path)


def draw_segmentation(folder, **settings):
    return draw_maps(
        *(folder / name for name in ('val', 'truth', 'found')),
        COLOURS,
        folder / 'a.png',
        **settings,
    )


def test_sheet_shows_maps_over_pictures(maps, drawn):
    assert draw_segmentation(maps) == maps / 'a.png'
    truth, found = (axes.images[1].get_array() for axes in drawn[0].axes[:2])
    assert np.array_equal(truth[30, 0, :3], COLOURS['cup'])
    assert np.array_equal(truth[5, 0, :3], COLOURS['ground'])
    assert np.array_equal(found[5, 0, :3], COLOURS['cup'])
    assert truth[0, -1, 3] == 0 < truth[0, 0, 3], 'what is ignored shows the picture'
    titles = [axes.get_title(loc='left') for axes in drawn[0].axes]
    assert titles[:2] == ['0.jpg   ground truth', 'predictions   75.0 %']
    assert titles[-1] == 'predictions   100.0 %'
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == list(COLOURS)


def test_sheet_of_maps_spreads_over_the_data_set(maps, drawn):
    draw_segmentation(maps, num_images=2)
    titles = [axes.get_title(loc='left') for axes in drawn[0].axes[0::2]]
    assert titles == ['0.jpg   ground truth', '4.jpg   ground truth']


# ---- The command


def test_command_draws_both_and_reports_errors(coco, capsys):
    main = load_tool('draw_demo').main
    write_log(coco / 'work', '20260101', evaluation(1, 0.5))
    arguments = [str(coco / 'work'), '--annotations', str(coco / 'val.json')]
    arguments += ['--image-folder', str(coco / 'val')]
    assert main([*arguments, '--results', str(coco / 'val.bbox.json')]) == 0
    for name in ('curves.png', 'predictions.png'):
        pixels = np.asarray(Image.open(coco / 'work' / name).convert('RGB'))
        assert pixels.std() > 5, 'an empty picture'
    assert main([*arguments, '--results', str(coco / 'absent.json')]) == 1
    assert 'absent.json: there is no such file' in capsys.readouterr().err


def test_command_draws_maps_of_a_folder(maps, capsys):
    main = load_tool('draw_demo').main
    write_log(maps / 'work', '20260101', evaluation(1, 0.5))
    arguments = [str(maps / 'work'), '--maps', str(maps / 'truth')]
    arguments += ['--image-folder', str(maps / 'val'), '--results', str(maps / 'found')]
    assert main(arguments) == 0
    assert 'Contact sheet: ' in capsys.readouterr().out
    assert np.asarray(Image.open(maps / 'work' / 'predictions.png').convert('RGB')).std() > 5
