"""Classes are the folders that hold images and are siblings, wherever they are in a clone."""

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.labels import Labels
from ptnt_mm.workbench.data.recognise import read_labels, recognise
from ptnt_mm.workbench.data.tree import Tree


def draw(root: Path, numbers: dict[str, int]) -> Path:
    """Draw a number of images in each folder; a folder that ends in '.png' has such images."""
    for folder, number in numbers.items():
        folder, dot, suffix = folder.partition('.')
        for i in range(number):
            file = root / folder / f'{folder.replace("/", "-")}-{i}.{suffix or "jpg"}'
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((8, 8, 3), i, np.uint8)).save(file)
    return root


def read(root: Path) -> Labels:
    tree = Tree(root)
    found = recognise(tree)
    assert found.format.name == 'folders'
    return read_labels(tree, found)


LAYOUTS = {
    'a clone': (
        {'Dataset/0': 4, 'Dataset/1': 4, 'Dataset/2': 4, 'Examples': 3}, ['0', '1', '2'], 3
    ),
    'a clone with classes on top': ({'cats': 9, 'dogs': 9, 'docs': 3, 'assets/img': 2},
                                    ['cats', 'dogs'], 5),
    'a clone with an odd picture': ({'cats': 30, 'dogs': 30, 'wiki.png': 1}, ['cats', 'dogs'], 1),
    'a clone with runs': ({'data/a': 9, 'data/b': 9, 'runs/1': 2, 'runs/2': 2}, ['a', 'b'], 4),
    'a rare class': ({'nv': 60, 'mel': 40, 'df': 1}, ['df', 'mel', 'nv'], 0),
    'nested': ({'animal/cat': 3, 'animal/dog': 3, 'vehicle/bus': 3, 'vehicle/car': 3},
               ['bus', 'car', 'cat', 'dog'], 0),
    'one folder deeper': ({'cat/images': 3, 'dog/pictures': 3, 'emu': 3}, ['cat', 'dog', 'emu'], 0),
    'some deeper': ({'cat': 3, 'cat/more': 2, 'dog': 3}, ['cat', 'dog'], 0),
    'repeated names': ({'cat/cat': 3, 'dog/dog': 3}, ['cat', 'dog'], 0),
    'sessions': ({'session1/cat': 3, 'session1/dog': 3, 'session2/cat': 3, 'session2/dog': 3},
                 ['cat', 'dog'], 0),
    'magnifications': ({'benign/40X': 3, 'benign/100X': 3, 'malignant/40X': 3, 'malignant/100X': 3},
                       ['benign', 'malignant'], 0),
    'days': ({'cat/2024-01-05': 3, 'cat/2024-01-06': 3, 'dog/2024-01-06': 3, 'dog/2024-02-01': 3},
             ['cat', 'dog'], 0),
    'takes': ({'cat/1': 3, 'cat/2': 3, 'dog/3': 3, 'dog/4': 3, 'emu/5': 3, 'emu/6': 3},
              ['cat', 'dog', 'emu'], 0),
    'names that repeat in part': (
        {'potato/healthy': 3, 'potato/scab': 3, 'potato/wilt': 3,
         'tomato/healthy': 3, 'tomato/mold': 3, 'tomato/spot': 3},
        ['potato/healthy', 'potato/scab', 'potato/wilt',
         'tomato/healthy', 'tomato/mold', 'tomato/spot'], 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize('layout', LAYOUTS)
def test_classes_are_siblings_that_hold_images(tmp_path: Path, layout: str):
    numbers, classes, outside = LAYOUTS[layout]
    labels = read(draw(tmp_path, numbers))
    assert labels.classes == classes
    assert len(labels.images) == sum(numbers.values()) - outside
    # What is left out is said.
    assert len({problem.file for problem in labels.problems}) == outside
    assert any('left out' in note for note in labels.notes) == bool(outside)


SPLITS = {
    'above': {'x/train/cat': 4, 'x/train/dog': 4, 'x/valid/cat': 2, 'x/valid/dog': 2},
    'below': {'cat/train': 4, 'cat/val': 2, 'dog/train': 4, 'dog/val': 2},
    'in words, twice': {
        'my_train/my_train/cat': 4, 'my_train/my_train/dog': 4,
        'my_val/my_val/cat': 2, 'my_val/my_val/dog': 2, 'my_pred/my_pred': 3,
    },
    'with words after them': {
        'training_set/cat': 4, 'training_set/dog': 4,
        'validation_set/cat': 2, 'validation_set/dog': 2,
    },
    'beside other pictures': {
        'train/cat': 4, 'train/dog': 4, 'val/cat': 2, 'val/dog': 2, 'paper/figures': 2,
    },
}  # fmt: skip


@pytest.mark.parametrize('layout', SPLITS)
def test_splits_are_above_or_below_classes(tmp_path: Path, layout: str):
    labels = read(draw(tmp_path, SPLITS[layout]))
    assert labels.classes == ['cat', 'dog']
    assert Counter(image.split for image in labels.images) == {'train': 8, 'val': 4}


def test_folders_below_a_split_are_classes_if_all_contain_the_same(tmp_path: Path):
    draw(tmp_path, {
        f'{split}/{name}/{place}': 3
        for split in ('train', 'test') for name in ('cat', 'dog') for place in ('in', 'out')
    })  # fmt: skip
    labels = read(tmp_path)
    assert labels.classes == ['cat', 'dog'] and len(labels.images) == 24


def test_trains_are_a_class_beside_cars_and_ships(tmp_path: Path):
    labels = read(draw(tmp_path, {'car': 3, 'ship': 3, 'train': 3}))
    assert labels.classes == ['car', 'ship', 'train']
    assert {image.split for image in labels.images} == {None}


def test_a_copy_inside_an_archive_is_read_once(tmp_path: Path):
    draw(tmp_path, {'no': 5, 'yes': 5})
    shutil.copytree(tmp_path, tmp_path.with_name('copy'))
    tmp_path.with_name('copy').rename(tmp_path / 'brain')
    labels = read(tmp_path)
    assert labels.classes == ['no', 'yes'] and len(labels.images) == 10
    assert any('brain repeats' in note for note in labels.notes)


@pytest.mark.parametrize(
    'numbers',
    [
        {'colour/cat': 3, 'colour/dog': 3, 'grey/cat': 3, 'grey/dog': 3},
        {'cat': 5, 'dog': 5, 'more/bird': 5, 'more/fish': 5},
    ],
    ids=['two meanings', 'two depths'],
)
def test_folders_that_do_not_show_the_classes_are_refused(tmp_path: Path, numbers: dict):
    with pytest.raises(UserError, match=r'(?s)several levels.*cat, dog.*pass one of them'):
        read(draw(tmp_path, numbers))


@pytest.mark.parametrize(
    'numbers',
    [
        {'OK/2024-01-05': 40, 'OK/2024-01-06': 40, 'bad/2024-01-05': 2, 'bad/2024-01-06': 2},
        {'OK/camera A': 40, 'OK/camera B': 40, 'bad/camera A': 2, 'bad/camera B': 2},
        {'2024-01-05/OK': 4, '2024-01-05/bad': 4, '2024-01-05/odd': 4, '2024-01-06/OK': 4,
         '2024-01-06/bad': 4, '2024-01-07/OK': 4, '2024-01-07/odd': 4},
        {'OK': 8, 'bad/001': 4, 'bad/002': 4},
    ],
    ids=['days of a rare class', 'cameras of a rare class', 'days that lack a class', 'numbers'],
)  # fmt: skip
def test_no_class_is_lost_between_days_and_cameras(tmp_path: Path, numbers: dict):
    with pytest.raises(UserError, match=r'(?s)several levels.*pass one of them'):
        read(draw(tmp_path, numbers))


def test_a_small_sample_of_the_classes_is_left_out(tmp_path: Path):
    labels = read(draw(tmp_path, {'all/1': 40, 'all/2': 40, 'sample/1': 2, 'sample/2': 2}))
    assert labels.classes == ['1', '2'] and len(labels.images) == 80


def test_two_folders_of_a_clone_are_not_two_classes(tmp_path: Path):
    with pytest.raises(UserError, match='8 images and no labels'):
        read(draw(tmp_path, {'Dataset': 5, 'Examples': 3}))
