"""``ptnt infer --labels``: what a detector finds becomes labels that ``ptnt new`` reads."""

import json
from pathlib import Path

import numpy as np
import pytest
from exported import export_detector
from PIL import Image

from ptnt_mm import api
from ptnt_mm.deploy import Detections
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.main import run as run_command
from ptnt_mm.workbench.data.recognise import read_labels, recognise
from ptnt_mm.workbench.data.tree import Tree
from ptnt_mm.workbench.data.writers import WRITER_NAMES

from .videos import write_video

CLASSES = ('cat', 'dog')
SIZE = (64, 48)  # width, height
BOX = [8.0, 4.0, 40.0, 36.0]


class Finds:
    """A detector that finds a dog in each image but the grey ones."""

    def __call__(self, pixels: np.ndarray) -> Detections:
        found = int(pixels.std() > 0)
        masks = np.zeros((1, *pixels.shape[:2]), bool)
        masks[:, 4:36, 8:40] = True
        labels = np.ones(found, np.int64)
        boxes = np.array([BOX], np.float32)
        return Detections(boxes[:found], np.full(found, 0.75), labels, masks[:found])


def save(file: Path, pixels: np.ndarray | None = None) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    seed = sum(map(ord, file.name))
    noise = np.random.default_rng(seed).integers(0, 255, (*SIZE[::-1], 3), np.uint8)
    Image.fromarray(noise if pixels is None else pixels).save(file)


def export(monkeypatch: pytest.MonkeyPatch, **about: object) -> None:
    export_detector(monkeypatch, Path('x.onnx'), Finds(), **dict(classes=[*CLASSES]) | about)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with pictures, and placeholder files for config and checkpoint."""
    monkeypatch.chdir(tmp_path)
    export(monkeypatch)
    for name in ('a.png', 'below/a.png', 'below/c.jpg'):
        save(tmp_path / 'data' / 'images' / name)
    save(tmp_path / 'data' / 'images' / 'grey.png', np.full((*SIZE[::-1], 3), 90, np.uint8))
    return tmp_path


def infer(*words: object) -> int:
    return run_command('infer', [*map(str, words), '--no-draw'])


@pytest.mark.parametrize('kind', WRITER_NAMES)
@pytest.mark.parametrize('masks', [False, True])
def test_predictions_become_labels_of_a_project(place: Path, monkeypatch, kind: str, masks: bool):
    """Also those in the folder of the data, and with images in subfolders."""
    export(monkeypatch, has_masks=masks)
    where = ('--out', 'data/found') if kind != 'yolo' else ('--out', 'found')
    assert infer('data/images', 'x.onnx', '--labels', kind, *where) == 0
    if kind == 'yolo':  # its labels are in a folder beside that of the images
        (place / 'found' / 'labels' / 'labels').rename(place / 'data' / 'labels')
        (place / 'found' / 'labels' / 'classes.txt').rename(place / 'data' / 'classes.txt')
    tree = Tree(place / 'data')
    labels = read_labels(tree, recognise(tree))
    assert recognise(tree).format.name == kind and not labels.problems
    objects = {str(image.path.relative_to(tree.root)): image.objects for image in labels.images}
    assert objects.pop('images/grey.png') == ()
    assert objects.keys() == {f'images/{n}' for n in ('a.png', 'below/a.png', 'below/c.jpg')}
    for (item,) in objects.values():
        x, y, width, height = item.box
        assert item.label == 'dog'
        assert (x, y, x + width, y + height) == pytest.approx(BOX, abs=1.2)
        assert (item.segmentation is not None) == (masks and kind != 'voc')
    assert any('ptnt infer' in note for note in labels.notes) == (kind != 'yolo')


def test_labels_in_another_format_are_not_said_to_be_read(place: Path):
    assert infer('data/images', 'x.onnx', '--labels', 'voc', '--out', 'data/found') == 0
    (place / 'data' / 'found' / 'labels').rename(place / 'data' / 'Annotations')
    assert (
        infer(
            'data/images',
            'x.onnx',
            '--labels',
            'labelme',
            '--out',
            'data/found',
            '--overwrite',
        )
        == 0
    )
    tree = Tree(place / 'data')
    recognised = recognise(tree)
    assert recognised.format.name == 'voc' and 'LabelMe' in ''.join(recognised.others)
    assert not any('so correct them' in note for note in read_labels(tree, recognised).notes)


def test_masks_that_a_format_has_no_place_for_are_named(place: Path, monkeypatch, capsys):
    for masks in (False, True):
        export(monkeypatch, has_masks=masks)
        assert infer('data/images', 'x.onnx', '--labels', 'voc', '--out', str(masks)) == 0
        assert ('without masks' in capsys.readouterr().out) == masks


def test_labels_are_never_replaced(place: Path, capsys):
    """They may have been corrected for hours."""
    command = 'data/images', 'x.onnx', '--labels', 'labelme', '--out', 'found'
    assert infer(*command) == 0
    file = place / 'found' / 'labels' / 'a.json'
    file.write_text('corrected')
    assert infer(*command, '--overwrite') == 1
    assert 'found/labels' in capsys.readouterr().err and file.read_text() == 'corrected'
    assert infer(*command[:2], '--out', 'found', '--overwrite') == 0
    assert file.read_text() == 'corrected'


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('a\udcff.jpg', r'these names are not: data/images/a\udcff.jpg'),
        ('a\nb.jpg', r"the control characters in these names: 'a\nb.jpg'"),
    ],
)
def test_names_that_no_label_file_can_have_are_refused_before_work(
    place: Path, capsys, name: str, message: str
):
    save(place / 'data' / 'images' / 'a.jpg')
    (place / 'data' / 'images' / 'a.jpg').rename(place / 'data' / 'images' / name)
    assert infer('data/images', 'x.onnx', '--labels', 'yolo', '--out', 'found') == 1
    assert message in capsys.readouterr().err
    assert not (place / 'found').exists()


@pytest.mark.parametrize('kind', WRITER_NAMES)
def test_two_images_do_not_share_a_label_file(place: Path, capsys, kind: str):
    save(place / 'data' / 'images' / 'a.jpg')
    code = infer('data/images', 'x.onnx', '--labels', kind, '--out', 'found')
    assert code == (kind != 'coco')
    if code:
        assert 'a.jpg' in capsys.readouterr().err
        assert not (place / 'found').exists()


def test_other_inputs_and_models_are_refused(place: Path, monkeypatch, capsys):
    write_video(place / 'film.mp4', 2)
    assert infer('film.mp4', 'x.onnx', '--labels', 'coco') == 1
    assert 'film.mp4' in capsys.readouterr().err
    export(monkeypatch, task='segmentation')
    assert infer('data/images', 'x.onnx', '--labels', 'coco', '--out', 'found') == 1
    assert '--labels coco' in capsys.readouterr().err
    assert not (place / 'found').exists()


def test_an_unknown_format_is_refused_with_the_nearest(place: Path):
    with pytest.raises(UserError, match='labelme'):
        api.infer(None, 'x.onnx', place / 'data' / 'images', labels='labelm')


def test_classes_without_names_have_numbers(place: Path, monkeypatch):
    export(monkeypatch, classes=None)
    assert infer('data/images', 'x.onnx', '--labels', 'coco', '--out', 'found') == 0
    content = json.loads((place / 'found' / 'labels' / 'annotations.json').read_text())
    assert [category['name'] for category in content['categories']] == ['class 1']
