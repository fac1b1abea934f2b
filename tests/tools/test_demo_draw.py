"""Contact sheets and training curves: what is drawn, and what is said about bad files."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from demo import contact_sheet
from demo.detection_sheet import draw_predictions
from demo.segmentation_sheet import draw_maps
from ptnt_mm.utils.errors import UserError
from ptnt_mm.visualization import curves, figures
from ptnt_mm.visualization.curves import draw_curves

TOOL = Path(__file__).parents[2] / 'tools' / 'draw_demo.py'


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
        annotations.append(dict(id=number, image_id=number, category_id=3, bbox=box))
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
    return draw_predictions(
        folder / 'val.json', folder / 'val', folder / 'val.bbox.json', folder / 'a.png', **settings
    )


def drawn_figure(monkeypatch, module):
    """Catch the figure that is saved, to look into it."""
    caught = []

    def save(figure, out_file):
        caught.append(figure)
        return figures.save(figure, out_file)

    monkeypatch.setattr(module, 'save', save)
    return caught


# ---- Contact sheet of a detector


def test_sheet_shows_truth_beside_predictions_above_the_threshold(coco, monkeypatch):
    caught = drawn_figure(monkeypatch, contact_sheet)
    assert draw(coco, score_thr=0.5) == coco / 'a.png'
    axes = caught[0].axes
    assert len(axes) == 10
    assert [len(one.patches) for one in axes[0::2]] == [1, 1, 1, 1, 1]
    assert [len(one.patches) for one in axes[1::2]] == [0, 0, 1, 1, 0]
    assert [text.get_text() for text in axes[7].texts] == ['cup 0.80']
    box = axes[0].patches[0]
    assert (box.get_x(), box.get_y(), box.get_width(), box.get_height()) == (4.5, 5.5, 20, 18)
    assert box.get_edgecolor()[:3] == axes[5].patches[0].get_edgecolor()[:3] == figures.colour(0)
    legend = [text.get_text() for text in caught[0].legends[0].get_texts()]
    assert legend == ['cup'], 'only classes that occur'


def test_sheet_spreads_over_the_data_set(coco, monkeypatch):
    caught = drawn_figure(monkeypatch, contact_sheet)
    draw(coco, num_images=3)
    titles = [axes.get_title(loc='left').split()[0] for axes in caught[0].axes[0::2]]
    assert titles == ['1.jpg', '3.jpg', '5.jpg']


def test_sheet_without_any_prediction_is_drawn(coco):
    write(coco / 'val.bbox.json', [])
    with Image.open(draw(coco)) as image:
        assert min(image.size) > 300
    assert not list(coco.glob('.a.png*')), 'no partial file is left'


@pytest.mark.parametrize(
    ('file', 'content', 'message'),
    [
        ('val.json', None, 'annotation file .*val.json cannot be read: No such file'),
        ('val.json', '', 'annotation file .* is not JSON'),
        ('val.json', dict(images=[], annotations=[], categories=[]), 'no COCO annotations'),
        ('val.json', [], 'no COCO annotations'),
        ('val.bbox.json', None, 'results file .* cannot be read: No such file'),
        ('val.bbox.json', '[{"image_id": 1', 'results file .* is not JSON, or cut short'),
        ('val.bbox.json', {}, 'no COCO results'),
        ('val.bbox.json', [dict(image_id=1)], 'no COCO results: .*bbox, category_id'),
        (
            'val.bbox.json',
            [dict(image_id=9, category_id=3, bbox=[0, 0, 1, 1], score=1)],
            'other annotations: they know no picture 9',
        ),
        (
            'val.bbox.json',
            [dict(image_id=1, category_id=4, bbox=[0, 0, 1, 1], score=1)],
            'other annotations: .*no category 4',
        ),
        ('val/1.jpg', None, 'picture .*1.jpg cannot be read'),
        ('val/1.jpg', 'no image', 'picture .*1.jpg cannot be read'),
    ],
)
def test_bad_files_are_named(coco, file, content, message):
    (coco / file).unlink()
    if content is not None:
        write(coco / file, content)
    with pytest.raises(UserError, match=message):
        draw(coco)
    assert not (coco / 'a.png').exists()


@pytest.mark.parametrize(
    ('settings', 'message'),
    [(dict(score_thr=40), 'score_thr is 40'), (dict(num_images=0), 'num_images is 0')],
)
def test_senseless_settings_are_refused(coco, settings, message):
    with pytest.raises(UserError, match=message):
        draw(coco, **settings)


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


def test_sheet_shows_maps_over_pictures(maps, monkeypatch):
    caught = drawn_figure(monkeypatch, contact_sheet)
    assert draw_segmentation(maps) == maps / 'a.png'
    truth, found = (axes.images[1].get_array() for axes in caught[0].axes[:2])
    assert np.array_equal(truth[30, 0, :3], COLOURS['cup'])
    assert np.array_equal(truth[5, 0, :3], COLOURS['ground'])
    assert np.array_equal(found[5, 0, :3], COLOURS['cup'])
    assert truth[0, -1, 3] == 0 < truth[0, 0, 3], 'what is ignored shows the picture'
    titles = [axes.get_title(loc='left') for axes in caught[0].axes]
    assert titles[:2] == ['0.jpg   ground truth', 'predictions   75.0 %']
    assert titles[-1] == 'predictions   100.0 %'
    assert [text.get_text() for text in caught[0].legends[0].get_texts()] == list(COLOURS)


def test_sheet_of_maps_spreads_over_the_data_set(maps, monkeypatch):
    caught = drawn_figure(monkeypatch, contact_sheet)
    draw_segmentation(maps, num_images=2)
    titles = [axes.get_title(loc='left') for axes in caught[0].axes[0::2]]
    assert titles == ['0.jpg   ground truth', '4.jpg   ground truth']


@pytest.mark.parametrize(
    ('file', 'pixels', 'message'),
    [
        ('found/5.png', np.zeros((40, 60), np.uint8), 'found/5.png has no picture in'),
        ('found/0.png', np.zeros((4, 6), np.uint8), '0.png is 6x4, its ground truth 60x40'),
        ('found/0.png', np.zeros((40, 60, 3), np.uint8), 'not a map of indices: it has 3 channels'),
        ('truth/0.png', None, 'map .*truth/0.png cannot be read'),
        ('val/0.jpg', None, 'found/0.png has no picture'),
    ],
)
def test_bad_maps_are_named(maps, file, pixels, message):
    if pixels is None:
        (maps / file).unlink()
    else:
        save(maps / file, pixels)
    with pytest.raises(UserError, match=message):
        draw_segmentation(maps)
    assert not (maps / 'a.png').exists()


def test_a_folder_without_maps_says_how_to_get_them(maps):
    with pytest.raises(UserError, match='holds no .png maps: .*test_evaluator.output_dir=.*absent'):
        draw_maps(maps / 'val', maps / 'truth', maps / 'absent', COLOURS, maps / 'a.png')


# ---- Curves


def train_line(step, loss, **others):
    return dict(
        lr=1e-3, time=0.5, loss=loss, loss_cls=loss / 2, epoch=step // 30, step=step, **others
    )


def val_line(epoch, value):
    return {'coco/bbox_mAP': value, 'coco/bbox_mAP_s': -1.0, 'time': 0.1, 'step': epoch}


def write_log(work_dir, name, lines, tail=''):
    text = ''.join(json.dumps(line) + '\n' for line in lines)
    return write(work_dir / name / 'vis_data' / 'scalars.json', text + tail)


def lines_of(axes):
    return {line.get_label(): list(map(tuple, line.get_xydata())) for line in axes.lines}


def test_curves_join_resumes_and_the_later_run_wins(tmp_path, monkeypatch):
    write_log(
        tmp_path,
        '20260101_000000',
        [train_line(10, 4.0), train_line(20, 3.0), val_line(1, 0.1), train_line(30, 9.0)],
        tail='{"lr": 0.0, "lo',  # killed while it wrote
    )
    write_log(
        tmp_path, '20260101_000500', [train_line(25, 2.0), train_line(35, 1.0), val_line(2, 0.3)]
    )
    caught = drawn_figure(monkeypatch, curves)
    assert draw_curves(tmp_path, tmp_path / 'curves.png').is_file()
    losses, metrics = caught[0].axes
    drawn = lines_of(losses)
    assert drawn['sum of all'] == [(10, 4), (20, 3), (25, 2), (35, 1)]
    assert drawn['loss_cls'] == [(10, 2), (20, 1.5), (25, 1), (35, 0.5)]
    assert drawn['resumed'][0][0] == 25
    assert set(drawn) == {'sum of all', 'loss_cls', 'resumed'}, 'no lr and no time among losses'
    assert lines_of(metrics) == {'bbox_mAP  0.300': [(1, 0.1), (2, 0.3)]}
    assert (losses.get_xlabel(), metrics.get_xlabel()) == ('iteration', 'epoch')


def test_the_metric_that_ranks_segmenters_comes_first(tmp_path, monkeypatch):
    lines = [dict(step=10, loss=1.0), dict(aAcc=70.0, mIoU=40.0, mAcc=50.0, time=0.1, step=10)]
    write_log(tmp_path, '20260101', lines)
    caught = drawn_figure(monkeypatch, curves)
    draw_curves(tmp_path, tmp_path / 'curves.png')
    metrics = caught[0].axes[1]
    labels = [line.get_label() for line in metrics.lines]
    assert labels == ['mIoU  40.000', 'aAcc  70.000', 'mAcc  50.000']
    assert metrics.get_xlabel() == 'iteration'


def test_training_from_the_start_again_replaces_the_old_curves(tmp_path, monkeypatch):
    write_log(tmp_path, '20260101', [train_line(10, 4.0), train_line(20, 3.0), val_line(1, 0.1)])
    write_log(tmp_path, '20260102', [train_line(10, 5.0)])
    caught = drawn_figure(monkeypatch, curves)
    draw_curves(tmp_path, tmp_path / 'curves.png')
    assert lines_of(caught[0].axes[0])['sum of all'] == [(10, 5)]
    assert 'no evaluation yet' in [text.get_text() for text in caught[0].axes[1].texts]


def test_infinite_losses_are_left_out(tmp_path, monkeypatch):
    write_log(tmp_path, '20260101', [train_line(10, 4.0), train_line(20, float('nan'))])
    caught = drawn_figure(monkeypatch, curves)
    draw_curves(tmp_path, tmp_path / 'curves.png')
    assert lines_of(caught[0].axes[0])['sum of all'] == [(10, 4)]


def test_missing_empty_and_broken_logs_are_named(tmp_path):
    with pytest.raises(UserError, match='holds no training log'):
        draw_curves(tmp_path, tmp_path / 'curves.png')
    log = write_log(tmp_path, '20260101', [])
    with pytest.raises(UserError, match='holds no losses yet'):
        draw_curves(tmp_path, tmp_path / 'curves.png')
    write(log, 'nonsense\n' + json.dumps(train_line(10, 1.0)) + '\n')
    with pytest.raises(UserError, match=r'scalars.json, line 1, is not what MMEngine logs'):
        draw_curves(tmp_path, tmp_path / 'curves.png')


def test_figure_that_cannot_be_saved_is_refused(tmp_path):
    write_log(tmp_path, '20260101', [train_line(10, 4.0)])
    with pytest.raises(UserError, match=r'curves.txt ends in ".txt"; use .png'):
        draw_curves(tmp_path, tmp_path / 'curves.txt')
    write(tmp_path / 'file', '')
    with pytest.raises(UserError, match='curves.png cannot be written'):
        draw_curves(tmp_path, tmp_path / 'file' / 'curves.png')


# ---- The command, and the import


def test_command_draws_both_and_reports_errors(coco, capsys):
    main = runpy.run_path(str(TOOL))['main']
    write_log(coco / 'work', '20260101', [train_line(10, 4.0), val_line(1, 0.5)])
    arguments = [str(coco / 'work'), '--annotations', str(coco / 'val.json')]
    arguments += ['--image-folder', str(coco / 'val')]
    assert main([*arguments, '--results', str(coco / 'val.bbox.json')]) == 0
    for name in ('curves.png', 'predictions.png'):
        pixels = np.asarray(Image.open(coco / 'work' / name).convert('RGB'))
        assert pixels.std() > 5, 'an empty picture'
    assert main([*arguments, '--results', str(coco / 'absent.json')]) == 1
    assert 'absent.json cannot be read' in capsys.readouterr().err


def test_command_draws_maps_of_a_folder(maps, capsys):
    main = runpy.run_path(str(TOOL))['main']
    write_log(maps / 'work', '20260101', [dict(train_line(10, 4.0)), val_line(1, 0.5)])
    arguments = [str(maps / 'work'), '--maps', str(maps / 'truth')]
    arguments += ['--image-folder', str(maps / 'val'), '--results', str(maps / 'found')]
    assert main(arguments) == 0
    assert 'Contact sheet: ' in capsys.readouterr().out
    assert np.asarray(Image.open(maps / 'work' / 'predictions.png').convert('RGB')).std() > 5


def test_importing_loads_no_plotting_library():
    code = (
        'import sys, ptnt_mm\n'
        'assert not [n for n in sys.modules if n.startswith(("demo", "ptnt_mm.vis"))]\n'
        'before = set(sys.modules)\n'
        'import demo.detection_sheet, ptnt_mm.visualization.curves\n'
        'import demo.segmentation_sheet\n'
        'new = {name.partition(".")[0] for name in set(sys.modules) - before}\n'
        'assert not new & {"matplotlib", "cv2", "pycocotools", "PIL"}, new\n'
    )
    subprocess.run([sys.executable, '-c', code], check=True, cwd=Path(__file__).parents[2])
