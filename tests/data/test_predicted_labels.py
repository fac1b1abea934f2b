"""Labels that ``ptnt infer`` wrote count for the images that have no others."""

import json
import shutil
from pathlib import Path

import pytest

from ptnt_mm.workbench.data.labels import Labels
from ptnt_mm.workbench.data.predictions import FILE, FORMAT
from ptnt_mm.workbench.data.recognise import recognise
from ptnt_mm.workbench.data.tree import Tree

from . import made
from .formats.coco import coco
from .formats.cvat import cvat
from .formats.labelme import labelme
from .formats.voc import voc
from .formats.yolo import write_yolo_labels


@pytest.fixture
def found(tmp_path: Path) -> Path:
    """Make a folder with results of ``ptnt infer``; return that of its labels."""
    folder = tmp_path / 'found' / 'labels'
    folder.mkdir(parents=True)
    (folder.parent / FILE).write_text(json.dumps(dict(format=FORMAT, images=[])))
    return folder


def objects(labels: Labels) -> dict[str, int]:
    return {image.path.stem: len(image.objects) for image in labels.images}


@pytest.mark.parametrize(
    ('make', 'pattern'), [(coco, '*.json'), (voc, 'Annotations/*.xml'), (labelme, '*.json')]
)
def test_corrected_labels_replace_them(tmp_path: Path, found: Path, make, pattern: str):
    """Some of the same kind, of all images but the last: its objects of the model are used."""
    expected = objects(made.read(make(tmp_path)))
    for file in tmp_path.glob(pattern):
        shutil.copy(file, found)
        if file.stem == f'im{made.COUNT - 1}':
            file.unlink()
    labels = made.read(tmp_path)
    assert objects(labels) == expected
    number = made.COUNT if make is coco else made.COUNT - 1
    note = f'{number} images with labels besides those that ptnt infer wrote: only the others'
    assert any(note in line for line in labels.notes)


def test_an_image_whose_objects_were_all_deleted_has_none(tmp_path: Path, found: Path):
    file = next(coco(tmp_path).rglob('*.json'))
    shutil.copy(file, found)
    content = json.loads(file.read_text())
    first = content['images'][0]
    content['annotations'] = [a for a in content['annotations'] if a['image_id'] != first['id']]
    file.write_text(json.dumps(content))
    assert objects(made.read(tmp_path))[Path(first['file_name']).stem] == 0


def test_the_format_is_that_of_people(tmp_path: Path, found: Path):
    """Although the model labelled more images."""
    cvat(tmp_path / 'one')
    for i in range(3 * made.COUNT):
        made.draw(tmp_path / 'two' / f'new{i}.png', 10 + i)
    coco(tmp_path / 'other')
    shutil.copy(next((tmp_path / 'other').rglob('*.json')), found)
    shutil.rmtree(tmp_path / 'other')
    tree = Tree(tmp_path)
    recognised = recognise(tree)
    assert recognised.format.name == 'cvat' and 'COCO' in recognised.others[0]


@pytest.mark.parametrize(
    ('name', 'text'),
    [
        ('classes.txt', '{}\n{}\n'),
        ('data.yaml', 'train: images\nval: images\nnames: [{}, {}]\n'),
    ],
)
def test_images_of_yolo_join_those_labelled_before(
    tmp_path: Path, found: Path, name: str, text: str
):
    """The model's data.yaml has other numbers, and no say in the splits of the rest."""
    for folder in (tmp_path / 'monday', found):
        made.draw_all(folder / 'images')
        write_yolo_labels(folder / 'labels', range(made.COUNT))
    for i, image in enumerate(sorted((found / 'images').iterdir())):
        made.draw(image, 10 + i)
        image.rename(image.with_stem(f'new{i}'))
        (found / 'labels' / f'im{i}.txt').rename(found / 'labels' / f'new{i}.txt')
    first, second = made.NAMES
    (tmp_path / 'monday' / name).write_text(text.format(first, second))
    (found / 'data.yaml').write_text(f'train: train.txt\nnames: [{second}, {first}]\n')
    (found / 'train.txt').write_text(''.join(f'images/new{i}.png\n' for i in range(made.COUNT)))
    labels = made.read(tmp_path)
    assert len(labels.images) == 2 * made.COUNT and not labels.problems
    by_model = [image for image in labels.images if image.path.stem.startswith('new')]
    assert {image.split for image in by_model} == {None}
    leftmost = {i.path.stem: min(i.objects, key=lambda item: item.box).label for i in labels.images}
    assert (leftmost['im1'], leftmost['new1']) == (first, second)
