"""A project like an earlier one: images keep their splits, and classes their order."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from data import made
from data.formats.class_masks import colour_masks
from data.formats.coco import label_studio
from data.formats.folders import class_folders
from data.formats.object_masks import object_masks

from ptnt_mm.api import create_project
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.read import read_config

from .test_split import boxes, photograph, save

pytestmark = pytest.mark.usefixtures('untried')


def splits_of(project: Path) -> dict[str, str]:
    """The split of each image by its path, from the files of any task."""
    found = {}
    for split in ('train', 'val', 'test'):
        file = project / 'labels' / f'{split}.json'
        if file.is_file():
            names = [image['file_name'] for image in json.loads(file.read_text())['images']]
        else:
            file = file.with_suffix('.txt')
            names = file.read_text().splitlines() if file.is_file() else []
        found |= {name.split()[0]: split for name in names}
    return found


def by_name(project: Path) -> dict[str, str]:
    return {Path(name).name: split for name, split in splits_of(project).items()}


def grown(tmp_path: Path, change: Callable[[Path], None] = lambda root: None) -> tuple[dict, dict]:
    """The splits of a project of 20 images, half to validate, and of one like it with 30 more."""
    root = boxes(tmp_path / 'data', [f'{i}.jpg' for i in range(20)])
    create_project(root, tmp_path / 'one', val_share=0.5)
    more = [f'{i}.jpg' for i in range(50)]
    boxes(root, more)
    change(root)
    create_project(root, tmp_path / 'two', like=tmp_path / 'one')
    return by_name(tmp_path / 'one'), by_name(tmp_path / 'two')


def test_images_keep_their_splits_and_others_are_split(tmp_path: Path):
    before, after = grown(tmp_path)
    assert {name: after[name] for name in before} == before
    new = [split for name, split in after.items() if name not in before]
    assert len(new) == 30 and new.count('val') == 6


def test_without_it_some_would_move(tmp_path: Path):
    """Otherwise the test above shows nothing."""
    before, _ = grown(tmp_path)
    create_project(tmp_path / 'data', tmp_path / 'three')
    after = by_name(tmp_path / 'three')
    assert {name: after[name] for name in before} != before


def move(root: Path) -> None:
    """Into a folder below, as where further ones arrive in folders of their own."""
    for kind in ('images', 'labels'):
        (root / 'monday' / kind).mkdir(parents=True)
        for file in sorted((root / kind).iterdir()):
            file.rename(root / 'monday' / kind / file.name)


def rename(root: Path) -> None:
    """All images have other names; only their bytes tell which is which."""
    for file in [*(root / 'images').iterdir(), *(root / 'labels').iterdir()]:
        file.rename(file.with_stem(f'photo{file.stem}'))


def edit(root: Path) -> None:
    """All images have other bytes; only their places tell which is which."""
    for i in range(20):
        save(photograph(1000 + i), root / 'images' / f'{i}.jpg')


@pytest.mark.parametrize('change', [move, rename, edit])
def test_images_are_known_by_place_bytes_or_name(tmp_path: Path, change: Callable):
    root = boxes(tmp_path / 'data', [f'{i}.jpg' for i in range(20)])
    create_project(root, tmp_path / 'one', val_share=0.5)
    if change is rename:  # the earlier images stay where they were
        root = shutil.copytree(root, tmp_path / 'copy')
    change(root)
    create_project(root, tmp_path / 'two', like=tmp_path / 'one')
    before, after = by_name(tmp_path / 'one'), by_name(tmp_path / 'two')
    prefix = 'photo' if change is rename else ''
    assert after == {f'{prefix}{name}': split for name, split in before.items()}


def test_a_name_that_two_images_have_is_no_sign(tmp_path: Path):
    """Every camera writes IMG_1.jpg."""
    root = boxes(tmp_path / 'data', [f'{i}.jpg' for i in range(10)])
    create_project(root, tmp_path / 'one')
    shutil.rmtree(root)
    lines = []
    root = boxes(tmp_path / 'new', [f'{folder}/{i}.jpg' for folder in 'ab' for i in range(10)])
    create_project(root, tmp_path / 'two', like=tmp_path / 'one', on_line=lines.append)
    assert any('warning' in line and 'none of its 10 images' in line for line in lines)


def test_copies_of_its_images_follow_them(tmp_path: Path):
    """Else the score on its validation images would be that of images seen in training."""

    def copy(root: Path) -> None:
        for i in range(20):
            label = root / 'labels' / f'{i}.txt'
            shutil.copy(label, root / 'labels' / f'again{i}.txt')
            shutil.copy(root / 'images' / f'{i}.jpg', root / 'images' / f'again{i}.jpg')

    before, after = grown(tmp_path, copy)
    for name, split in before.items():
        assert after[name] == after[f'again{name}'] == split


def test_test_images_stay_and_their_copies_are_not_trained_on(tmp_path: Path):
    root = boxes(
        tmp_path / 'data', [f'{s}/{s}{i}.jpg' for s in ('train', 'test') for i in range(9)]
    )
    create_project(root, tmp_path / 'one')
    for i in range(9):
        for kind, suffix in (('images', 'jpg'), ('labels', 'txt')):
            old = root / kind / 'test' / f'test{i}.{suffix}'
            shutil.copy(old, root / kind / 'train' / f'test{i} (1).{suffix}')
    create_project(root, tmp_path / 'two', like=tmp_path / 'one')
    before, after = by_name(tmp_path / 'one'), by_name(tmp_path / 'two')
    assert {name: after[name] for name in before} == before
    copied = {split for name, split in splits_of(tmp_path / 'two').items() if '(1)' in name}
    assert 'train' not in {after.get(f'test{i} (1).jpg', 'val') for i in range(9)} | copied


def test_one_new_image_is_trained_on_and_none_is_fine(tmp_path: Path):
    root = boxes(tmp_path / 'data', [f'{i}.jpg' for i in range(10)])
    create_project(root, tmp_path / 'one')
    create_project(root, tmp_path / 'same', like=tmp_path / 'one')
    assert by_name(tmp_path / 'same') == by_name(tmp_path / 'one')
    boxes(root, [f'{i}.jpg' for i in range(11)])
    create_project(root, tmp_path / 'two', like=str(tmp_path / 'same'))
    assert by_name(tmp_path / 'two') == by_name(tmp_path / 'one') | {'10.jpg': 'train'}
    assert '--like' in (tmp_path / 'two' / 'config.py').read_text().splitlines()[0]


def test_images_that_were_all_trained_on_are_refused(tmp_path: Path):
    root = boxes(tmp_path / 'data', [f'{i}.jpg' for i in range(10)])
    create_project(root, tmp_path / 'one')
    for name, part in by_name(tmp_path / 'one').items():
        if part == 'val':
            for file in root.rglob(f'{Path(name).stem}.*'):
                file.unlink()
    with pytest.raises(UserError, match='none is left for val: add images, or leave out `like`'):
        create_project(root, tmp_path / 'two', like=tmp_path / 'one')


@pytest.mark.parametrize('make', [class_folders, colour_masks, object_masks])
def test_projects_of_every_task_can_be_continued(tmp_path: Path, make: Callable):
    data = make(tmp_path / 'data')
    create_project(data, tmp_path / 'one')
    create_project(data, tmp_path / 'two', like=tmp_path / 'one')
    assert splits_of(tmp_path / 'two') == splits_of(tmp_path / 'one')
    both = [read_config(tmp_path / name / 'config.py').classes for name in ('one', 'two')]
    assert both[0] == both[1]


def test_classes_keep_their_order_and_new_ones_come_last(tmp_path: Path):
    """A head has one output for each class, by its number."""
    root = label_studio(tmp_path / 'data')
    create_project(root, tmp_path / 'one')
    content = json.loads((root / 'result.json').read_text())
    content['categories'] = [dict(id=7, name='new'), *content['categories'][::-1]]
    (root / 'result.json').write_text(json.dumps(content))
    create_project(root, tmp_path / 'two', like=tmp_path / 'one')
    assert list(read_config(tmp_path / 'two' / 'config.py').classes) == [*made.NAMES, 'new']
    for split in ('train', 'val'):
        one, two = (
            json.loads((tmp_path / name / 'labels' / f'{split}.json').read_text())['annotations']
            for name in ('one', 'two')
        )
        assert [a['category_id'] for a in one] == [a['category_id'] for a in two]


def test_a_list_of_a_project_that_cannot_be_read_is_named(tmp_path: Path):
    data = class_folders(tmp_path / 'data')
    create_project(data, tmp_path / 'one')
    file = tmp_path / 'one' / 'labels' / 'train.txt'
    file.write_bytes(b'\xff\xfe')
    with pytest.raises(UserError, match=r'train\.txt'):
        create_project(data, tmp_path / 'two', like=tmp_path / 'one')


@pytest.mark.parametrize(
    'what', ['missing', 'a folder', 'a config of another kind', 'classes as a text']
)
def test_what_is_no_project_is_refused_before_the_data_is_read(tmp_path: Path, what: str):
    other = tmp_path / 'other'
    (tmp_path / 'empty').mkdir()
    if what != 'missing':
        other.mkdir()
    if what == 'a config of another kind':
        (other / 'config.py').write_text('model = dict()\n')
        (other / 'labels').mkdir()
    if what == 'classes as a text':
        (other / 'config.py').write_text("images = 'data'\nclasses = 'ab'\n")
        (other / 'labels').mkdir()
    with pytest.raises(UserError, match='other'):
        create_project(tmp_path / 'empty', tmp_path / 'two', like=other)
