"""Splits are kept, or derived only from the content of images."""

import shutil
from pathlib import Path

import pytest

from ptnt_mm.labels.recognise import read_labels, recognise
from ptnt_mm.labels.tree import Tree
from ptnt_mm.project.split import split_off
from ptnt_mm.utils.errors import UserError

from . import made


def splits(root: Path) -> dict[str, set[str]]:
    tree = Tree(root)
    found = split_off(read_labels(tree, recognise(tree)))
    return {split: {image.path.name for image in images} for split, images in found.items()}


def test_a_fifth_is_split_off(tmp_path: Path):
    for i in range(120):
        made.draw(tmp_path / made.NAMES[i % 2] / f'im{i}.png', i)
    found = splits(tmp_path)
    assert 12 <= len(found['val']) <= 36
    assert len(found['train']) + len(found['val']) == 120


def test_more_images_move_no_others_and_copies_stay_together(tmp_path: Path):
    for i in range(40):
        made.draw(tmp_path / made.NAMES[i % 2] / f'im{i}.png', i)
    before = splits(tmp_path)
    for i in range(40):
        folder = tmp_path / made.NAMES[i % 2]
        shutil.copy(folder / f'im{i}.png', folder / f'copy_of_im{i}.png')
        made.draw(folder / f'new{i}.png', 100 + i)
    after = splits(tmp_path)
    for split, names in before.items():
        assert names <= after[split]
        assert {f'copy_of_{name}' for name in names} <= after[split]


def test_each_class_is_on_both_sides(tmp_path: Path):
    for i in range(6):
        made.draw(tmp_path / made.NAMES[i % 2] / f'im{i}.png', i)
    found = splits(tmp_path)
    for names in found.values():
        assert {int(name[2]) % 2 for name in names} == {0, 1}


def test_a_test_split_is_left_alone(tmp_path: Path):
    made.voc_beside(tmp_path)
    (tmp_path / 'valid').rename(tmp_path / 'test')
    found = splits(tmp_path)
    assert found['test'] == {'im4.png', 'im5.png'}
    assert found['train'] and found['val']


def test_one_image_cannot_be_split(tmp_path: Path):
    made.coco(tmp_path)
    for file in list((tmp_path / 'images').iterdir())[1:]:
        file.unlink()
    with pytest.raises(UserError, match='only image'):
        splits(tmp_path)
