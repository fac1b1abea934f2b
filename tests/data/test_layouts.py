"""Layouts and faults of public data sets: each object is read with its image, class and split."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from data.formats.coco import one_box_each
from data.made import noise, read
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.boxes import Boxes, near_the_corner
from ptnt_mm.workbench.data.labels import Labels
from ptnt_mm.workbench.data.recognise import recognise
from ptnt_mm.workbench.data.tree import Tree
from ptnt_mm.workbench.pages.data.problems import group_problems

_SIZE = (80, 60)
_COUNT = 6


def _text(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding='utf-8')


def _xml(name: str, left: int) -> str:
    box = f'<xmin>{left}</xmin><ymin>5</ymin><xmax>{left + 20}</xmax><ymax>40</ymax>'
    return (
        f'<annotation><filename>{name}</filename><object><name>cat</name><bndbox>{box}</bndbox>'
        '</object></annotation>'
    )


def _lefts(labels: Labels, root: Path) -> dict[str, int]:
    """The left side of the only object in each image, which tells whose it is.

    VOC's are half a pixel less.
    """
    return {
        image.path.relative_to(root).as_posix(): round(image.objects[0].box[0] + 0.25)
        for image in labels.images
    }


@pytest.mark.parametrize('folder', ['labelled', 'visual_inspection', 'results_2020', 'annotations'])
def test_images_may_be_in_a_folder_with_the_name_of_labels(tmp_path: Path, folder: str):
    names = {f'{i}.png': i for i in range(_COUNT)}
    for name, i in names.items():
        noise(tmp_path / folder / name, i, _SIZE)
    _text(tmp_path / 'labels.json', one_box_each(names))
    labels = read(tmp_path)
    assert _lefts(labels, tmp_path) == {f'{folder}/{i}.png': i for i in range(_COUNT)}
    assert not labels.problems


def test_names_with_dots_and_without_suffix_in_a_file_with_a_mark(tmp_path: Path):
    for i in range(_COUNT):
        noise(tmp_path / f'images/v1.{i}.png', i, _SIZE)
    text = one_box_each({f'v1.{i}': i for i in range(_COUNT)})
    (tmp_path / 'labels.json').write_text(text, encoding='utf-8-sig')
    found = _lefts(read(tmp_path), tmp_path)
    assert found == {f'images/v1.{i}.png': i for i in range(_COUNT)}


def test_masks_do_not_stand_in_for_missing_images(tmp_path: Path):
    names = {f'{i}.png': i for i in range(_COUNT)}
    for name, i in names.items():
        noise(tmp_path / 'masks' / name, i, _SIZE)
        if i:
            noise(tmp_path / 'photos' / name, 100 + i, _SIZE)
    _text(tmp_path / 'labels.json', one_box_each(names))
    found = _lefts(read(tmp_path), tmp_path)
    assert found == {f'photos/{i}.png': i for i in range(1, _COUNT)}


@pytest.mark.parametrize(
    'line',
    [
        '{name}',
        '{name}  1',
        '{name}.png',
        './JPEGImages/{name}.png',
        '/home/me/VOC/JPEGImages/{name}.png',
        'Annotations\\{name}.xml',
        'JPEGImages/{name}.png Annotations/{name}.xml',
    ],
)
@pytest.mark.parametrize('name', ['{}', 'a.{}', 'img ({})', 'x/{}'])
def test_lists_of_image_sets(tmp_path: Path, line: str, name: str):
    if ' ' in name and line.startswith('JPEGImages'):
        pytest.skip('two names with spaces on a line cannot be told apart')
    names = [name.format(i) for i in range(_COUNT)]
    for i, each in enumerate(names):
        noise(tmp_path / f'JPEGImages/{each}.png', i, _SIZE)
        _text(tmp_path / f'Annotations/{each}.xml', _xml(f'{Path(each).name}.png', i))
    for split, part in (('train', names[:4]), ('val', names[4:])):
        listed = '\n'.join(line.format(name=each) for each in part)
        _text(tmp_path / f'ImageSets/Main/{split}.txt', listed + '\n')
    labels = read(tmp_path)
    assert not labels.problems
    assert [image.split for image in labels.images].count('val') == 2
    assert {i.path.stem[-1] for i in labels.images if i.split == 'val'} <= {'4', '5', ')'}


def test_images_of_the_same_name_in_parallel_folders(tmp_path: Path):
    for i, folder in enumerate('ab'):
        for k in range(3):
            noise(tmp_path / f'JPEGImages/{folder}/{k}.png', 10 * i + k, _SIZE)
            _text(tmp_path / f'Annotations/{folder}/{k}.xml', _xml(f'{k}.png', 10 * i + k))
    found = _lefts(read(tmp_path), tmp_path)
    assert found == {
        f'JPEGImages/{f}/{k}.png': 10 * i + k for i, f in enumerate('ab') for k in range(3)
    }


def test_a_label_file_belongs_to_the_image_of_its_name(tmp_path: Path):
    for i in range(_COUNT):
        noise(tmp_path / f'images/{i}.png', i, _SIZE)
        noise(tmp_path / f'preview/{i}.jpg', i, _SIZE)
        _text(tmp_path / f'xml/{i}.xml', _xml(f'{i}.png', i))
    assert _lefts(read(tmp_path), tmp_path) == {f'images/{i}.png': i for i in range(_COUNT)}


def test_labelme_files_that_were_copied(tmp_path: Path):
    for i in range(_COUNT):
        noise(tmp_path / f'{i}.png', i, _SIZE)
        shape = dict(label='cat', shape_type='rectangle', points=[[i, 5], [i + 20, 40]])
        _text(tmp_path / f'{i}.json', json.dumps(dict(shapes=[shape], imagePath='0.png')))
    labels = read(tmp_path)
    assert _lefts(labels, tmp_path) == {f'{i}.png': i for i in range(_COUNT)}
    assert len(labels.problems) == _COUNT - 1


def test_a_file_of_all_images_beside_those_of_the_splits(tmp_path: Path):
    names = {f'{i}.png': i for i in range(_COUNT)}
    for name, i in names.items():
        noise(tmp_path / 'images' / name, i, _SIZE)
    _text(tmp_path / 'all.json', one_box_each(names))
    _text(tmp_path / 'train.json', one_box_each({f'{i}.png': i for i in range(4)}))
    _text(tmp_path / 'val.json', one_box_each({f'{i}.png': i for i in range(4, _COUNT)}))
    found = {image.path.stem: image.split for image in read(tmp_path).images}
    assert found == {str(i): 'train' if i < 4 else 'val' for i in range(_COUNT)}


@pytest.mark.parametrize('index', ['0', '0.000'])
@pytest.mark.parametrize(
    ('images', 'texts'),
    [
        ('images', 'labels'),
        ('Images', 'labels'),
        ('JPEGImages', 'labels'),
        ('img', 'txt'),
        ('train/imgs', 'train/annotations'),
    ],
)
def test_yolo_in_parallel_folders(tmp_path: Path, images: str, texts: str, index: str):
    for i in range(_COUNT):
        noise(tmp_path / images / f'{i}.png', i, _SIZE)
        noise(tmp_path / 'logos' / f'logo{i}.png', i, _SIZE)
        _text(tmp_path / texts / f'{i}.txt', f'{index} {(i + 10) / 80} 0.5 0.25 0.5\n')
    found = _lefts(read(tmp_path), tmp_path)
    assert found == {f'{images}/{i}.png': i for i in range(_COUNT)}


def test_two_image_folders_beside_one_of_labels_are_not_guessed(tmp_path: Path):
    for i in range(_COUNT):
        for folder in ('rgb', 'depth'):
            noise(tmp_path / folder / f'{i}.png', i, _SIZE)
        _text(tmp_path / 'txt' / f'{i}.txt', '0 0.5 0.5 0.25 0.5\n')
    with pytest.raises(UserError):
        recognise(Tree(tmp_path), 'yolo')


def test_yolo_names_of_sets_that_were_put_together(tmp_path: Path):
    for folder, names in (('a', 'cat\ndog\n'), ('b', 'dog\ncat\n')):
        _text(tmp_path / folder / 'classes.txt', names)
        for i in range(3):
            noise(tmp_path / folder / f'{folder}{i}.png', i, _SIZE)
            _text(tmp_path / folder / f'{folder}{i}.txt', '0 0.5 0.5 0.25 0.5\n')
    found = {image.path.stem: image.objects[0].label for image in read(tmp_path).images}
    assert found == {f'{f}{i}': c for f, c in (('a', 'cat'), ('b', 'dog')) for i in range(3)}


def test_darknet_lists(tmp_path: Path):
    settings = 'classes = 2\ntrain = data/train.txt\nvalid = data/test.txt\nnames = data/my.names\n'
    _text(tmp_path / 'data/obj.data', settings)
    _text(tmp_path / 'data/my.names', 'cat\ndog\n')
    for i in range(_COUNT):
        noise(tmp_path / f'data/obj/{i}.png', i, _SIZE)
        _text(tmp_path / f'data/obj/{i}.txt', '1 0.5 0.5 0.25 0.5\n')
    for name, part in (('train', range(2, _COUNT)), ('test', range(2))):
        _text(tmp_path / f'data/{name}.txt', ''.join(f'data/obj/{i}.png\n' for i in part))
    labels = read(tmp_path)
    assert {i.path.stem for i in labels.images if i.split == 'val'} == {'0', '1'}
    assert {item.label for image in labels.images for item in image.objects} == {'dog'}


@pytest.mark.parametrize(
    ('change', 'is_near'),
    [
        (lambda boxes: boxes, False),
        (lambda boxes: boxes / 2, True),
        (lambda boxes: boxes / [6.4, 4.8, 6.4, 4.8], True),
        # Objects in the middle.
        (lambda boxes: boxes * 0.3 + [224, 168, 0, 0], False),
    ],
)
def test_boxes_near_the_corner(change: Callable, is_near: bool):
    rng = np.random.default_rng(0)
    sides = rng.uniform(20, 200, (100, 2))
    sizes = np.tile([640.0, 480.0], (100, 1))
    boxes = np.hstack([rng.uniform(0, 1, (100, 2)) * (sizes - sides), sides])
    assert (near_the_corner(Boxes(change(boxes), sizes)) is not None) == is_near


@pytest.mark.parametrize('name', ['labels_train_val.json', 'val_train.json', 'annotations.json'])
def test_a_file_for_several_splits_leaves_them_to_the_folders(tmp_path: Path, name: str):
    names = {f'{"train" if i else "val"}/{i}.png': i for i in range(_COUNT)}
    for image, i in names.items():
        noise(tmp_path / image, i, _SIZE)
    _text(tmp_path / name, one_box_each(names))
    found = [image.split for image in read(tmp_path).images]
    assert (found.count('train'), found.count('val')) == (_COUNT - 1, 1)


def test_names_of_images_with_dots_and_underscores_in_run_lengths(tmp_path: Path):
    noise(tmp_path / 'slide.v1_3.jpg', 0, _SIZE)
    _text(tmp_path / 'train.csv', 'ImageId,ClassId,EncodedPixels\nslide.v1_3.jpg,cat,1 5 61 5\n')
    labels = read(tmp_path)
    assert not labels.problems and labels.images[0].objects[0].label == 'cat'


def test_a_class_that_is_its_own_group_is_a_class(tmp_path: Path):
    """COCO's person, whose supercategory is person, in images without persons."""
    noise(tmp_path / '0.png', 0, _SIZE)
    content = json.loads(one_box_each({'0.png': 5}))
    (category,) = content['categories']
    content['categories'] += [
        dict(id=8, name='person', supercategory='person'),
        dict(id=9, name='animal', supercategory='none'),
    ]
    category['supercategory'] = 'animal'
    _text(tmp_path / 'labels.json', json.dumps(content))
    labels = read(tmp_path)
    assert labels.classes == [category['name'], 'person']


def test_a_problem_names_the_folder_of_an_image_whose_name_is_not_unique(tmp_path: Path):
    names = {f'{folder}/{i}.png': 5 for folder in 'abc' for i in range(4)}
    for i, image in enumerate(names):
        noise(tmp_path / image, i, _SIZE)
    content = json.loads(one_box_each(names))
    content['annotations'][5]['bbox'] = [200, 200, 5, 5]
    _text(tmp_path / 'labels.json', json.dumps(content))
    (detail,) = (problem.detail for problem in read(tmp_path).problems if '[200' in problem.detail)
    assert ' in b/1.png (' in detail
    (group,) = group_problems(f'labels.json: {detail}', tmp_path, map(tmp_path.joinpath, names))
    assert group.image == tmp_path / 'b/1.png' and group.boxes == [(200, 200, 5, 5)]
