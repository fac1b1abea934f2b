"""Settings of another machine are followed, and pictures elsewhere are not images to train on."""

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.data.labels import Labels
from ptnt_mm.workbench.data.recognise import read_labels, recognise
from ptnt_mm.workbench.data.tree import Tree

SPLITS = {'train': 4, 'val': 2}


def draw(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.zeros((16, 16, 3), np.uint8)).save(file)
    return file


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def fruit(root: Path, layout: str = 'images/{split}', val: str = 'val') -> Path:
    """Labelled images in two splits; and, as in a clone, plots, a logo and predictions."""
    for split, count in SPLITS.items():
        folder = layout.format(split=val if split == 'val' else split)
        for i in range(count):
            image = draw(root / folder / f'{split}{i}.jpg')
            label = str(image.relative_to(root)).replace('images', 'labels')
            write((root / label).with_suffix('.txt'), '0 0.5 0.5 0.2 0.2\n1 0.5 0.5 0.4 0.4\n')
    for name in ('logo.png', 'docs/screen.png', 'runs/detect/train/results.png'):
        draw(root / name)
    draw(root / 'runs' / 'detect' / 'train' / 'train_batch0.jpg')
    draw(root / 'runs' / 'detect' / 'predict' / 'val0.jpg')
    write(root / 'runs/detect/predict/labels/val0.txt', '0 0.5 0.5 0.2 0.2 0.9\n')
    return root


def read(root: Path, settings: Path | None = None) -> Labels:
    tree = Tree(root, settings=settings)
    found = recognise(tree)
    assert found.format.name == 'yolo'
    return read_labels(tree, found)


def splits(labels: Labels) -> dict:
    return dict(Counter(image.split for image in labels.images))


NAMES = 'names: [apple, pear]\n'
SETTINGS = {
    'absolute': 'train: /home/me/fruit/images/train\nval: /home/me/fruit/images/val\n',
    'Windows': 'train: C:\\Users\\me\\fruit\\images\\train\nval: C:\\Users\\me\\images\\val\n',
    'leading out': 'train: ../../work/images/train\nval: ../../work/images/val\n',
    'in datasets': 'train: datasets/fruit/images/train\nval: datasets/fruit/images/val\n',
    'path of another machine': 'path: /content/drive/fruit\ntrain: images/train\nval: images/val\n',
    'path of Windows': 'path: D:\\fruit\ntrain: images\\train\nval: images\\val\n',
    'only part of the path': 'train: /x/data/train\nval: /x/data/val\n',
    'lists of folders': 'train: [/x/images/train]\nvalid: [/x/images/val]\n',
    'nowhere': 'train: /x/one\nval: /x/two\n',
    'no val': 'train: images/train\n',
    'val nowhere': 'train: images/train\nval: /x/validation_images\n',
}


@pytest.mark.parametrize('kind', SETTINGS)
def test_the_end_of_a_path_is_found(tmp_path: Path, kind: str):
    write(fruit(tmp_path) / 'data.yaml', SETTINGS[kind] + NAMES)
    labels = read(tmp_path)
    assert splits(labels) == SPLITS
    assert all(len(image.objects) == 2 for image in labels.images)
    assert not any('without' in note or 'label file' in note for note in labels.notes)


@pytest.mark.parametrize(
    ('layout', 'val', 'settings'),
    [
        ('{split}/images', 'valid', 'train: D:\\a\\train\\images\nval: D:\\a\\valid\\images\n'),
        ('{split}/images', 'valid', 'train: ../train/images\nval: ../valid/images\n'),
        ('{split}', 'val', 'train: /data/train\nval: /data/val\n'),
        ('{split}/images', 'valid', 'train: /data/images\nval: /data/images\n'),
        ('data/images/{split}', 'val', 'train: .\nval: data/images/val\n'),
        ('Images/{split}', 'val', 'train: Images/train\nval: Images/val\n'),
    ],
)
def test_other_layouts(tmp_path: Path, layout: str, val: str, settings: str):
    fruit(tmp_path, layout, val)
    if 'Images' in layout:
        for label in tmp_path.glob('Images/*/*.txt'):
            write(tmp_path / 'Labels' / label.relative_to(tmp_path / 'Images'), label.read_text())
            label.unlink()
    write(tmp_path / 'data.yaml', settings + NAMES)
    labels = read(tmp_path)
    assert {image.path.stem[:-1] for image in labels.images} == set(SPLITS)
    assert all(len(image.objects) == 2 for image in labels.images)
    if settings[7] != '.':
        assert splits(labels) == SPLITS


@pytest.mark.parametrize('layout', ['{split}/images', '{split}/pictures/images/camera', 'images'])
def test_a_folder_of_another_split_does_not_fit(tmp_path: Path, layout: str):
    fruit(tmp_path, layout, val='train')
    below = layout.removeprefix('{split}/')
    settings = f'train: ../train/{below}\nval: ../valid/{below}\ntest: ../test/{below}\n'
    write(tmp_path / 'data.yaml', settings + NAMES)
    labels = read(tmp_path)
    missing = [p.detail.split(':')[0] for p in labels.problems if 'not found' in p.kind]
    assert missing[-2:] == ['val', 'test'] and len(labels.images) == 6
    assert not any('also in' in note for note in labels.notes)


def test_folders_further_down_and_in_other_capitals_are_found(tmp_path: Path):
    fruit(tmp_path, 'work/images/{split}')
    for kind in ('images', 'labels'):
        for split, name in (('train', 'one'), ('val', 'two')):
            (tmp_path / 'work' / kind / split).rename(tmp_path / 'work' / kind / name)
    write(tmp_path / 'data.yaml', f'train: C:\\x\\Images\\One\nval: /x/images/two\n{NAMES}')
    assert splits(read(tmp_path)) == SPLITS


@pytest.mark.parametrize('layout', ['images/{split}', '{split}/images', '{split}', '.'])
def test_without_settings_only_folders_of_labels_are_read(tmp_path: Path, layout: str):
    fruit(tmp_path, layout)
    labels = read(tmp_path)
    names = {image.path.name for image in labels.images}
    # A logo beside labelled images may be one without objects.
    assert names - {'logo.png'} == {
        f'{s}{i}.jpg' for s, count in SPLITS.items() for i in range(count)
    }
    assert ('logo.png' in names) == (layout == '.')


def test_lists_of_another_machine(tmp_path: Path):
    fruit(tmp_path)
    for split, count in SPLITS.items():
        names = (f'/home/me/fruit/images/{split}/{split}{i}.jpg\n' for i in range(count))
        write(tmp_path / f'{split}.txt', ''.join(names))
    write(tmp_path / 'data.yaml', f'train: /home/me/train.txt\nval: /home/me/val.txt\n{NAMES}')
    assert splits(read(tmp_path)) == SPLITS


def test_lists_are_splits_without_settings(tmp_path: Path):
    fruit(tmp_path, 'images')
    write(tmp_path / 'classes.txt', 'apple\npear\n')
    write(tmp_path / 'test.txt', 'apple\npear\n')  # names no images
    write(tmp_path / 'autosplit_val.txt', './images/train0.jpg\n./images/val0.jpg\n')
    assert splits(read(tmp_path)) == {None: 4, 'val': 2}
    write(tmp_path / 'train.txt', '/home/me/fruit/images/train0.jpg\nC:\\x\\train1.jpg\n')
    write(tmp_path / 'valid.txt', 'images/val0.jpg\n')
    labels = read(tmp_path)
    assert splits(labels) == {'train': 2, 'val': 1} and labels.classes == ['apple', 'pear']
    left = {p.file.name for p in labels.problems if 'none of the splits' in p.kind}
    assert left == {'train2.jpg', 'train3.jpg', 'val1.jpg'}


def test_of_lists_without_settings_test_comes_last(tmp_path: Path):
    fruit(tmp_path, 'images')
    write(tmp_path / 'classes.txt', 'apple\npear\n')
    for split, name in (('train', 'train0'), ('val', 'val0'), ('test', 'val0')):
        write(tmp_path / f'{split}.txt', f'images/{name}.jpg\n')
    write(tmp_path / 'bad_train_images.txt', 'images/train1.jpg\n')
    assert splits(read(tmp_path)) == {'train': 1, 'val': 1}


def test_each_split_may_have_a_copy_of_the_settings(tmp_path: Path):
    fruit(tmp_path, '{split}/images')
    for split in SPLITS:
        write(
            tmp_path / split / 'data.yaml', f'train: /x/train/images\nval: /x/val/images\n{NAMES}'
        )
    labels = read(tmp_path)
    assert splits(labels) == SPLITS and not any('data.yaml' in note for note in labels.notes)


@pytest.mark.parametrize('root', ['path: /home/me/training\n', ''])
def test_a_folder_of_all_splits_is_no_split(tmp_path: Path, root: str):
    """Such as a user or a project that is called dev or training."""
    fruit(tmp_path, '{split}1', val='hold')
    for file in [*tmp_path.glob('*1/*.jpg')]:
        write(file.with_suffix('.txt'), '0 0.5 0.5 0.2 0.2\n')
    before = '' if root else '/home/me/training/'
    paths = f'train: {before}train1\nval: {before}hold1\n'
    write(tmp_path / 'data.yaml', root + paths + NAMES)
    assert splits(read(tmp_path)) == SPLITS


@pytest.mark.parametrize(
    ('settings', 'expected'),
    [
        ('test: val.txt\n', {None: 4, 'test': 2}),
        ('val: val.txt\n', {None: 4, 'val': 2}),
        ('train: nowhere.txt\nval: val.txt\n', {None: 4, 'val': 2}),
        ('train: [nowhere.txt, part.txt]\nval: val.txt\n', {'train': 1, 'val': 2}),
        ('', {None: 4, 'val': 2}),
    ],
)
def test_the_rest_is_for_training_if_nothing_else_is(tmp_path: Path, settings: str, expected: dict):
    fruit(tmp_path, 'images')
    write(tmp_path / 'val.txt', './images/val0.jpg\n./images/val1.jpg\n')
    write(tmp_path / 'part.txt', './images/train0.jpg\n')
    write(tmp_path / 'data.yaml', settings + NAMES)
    assert splits(read(tmp_path)) == expected


def test_of_several_settings_those_are_used_whose_folders_exist(tmp_path: Path):
    fruit(tmp_path)
    write(
        tmp_path / 'coco.yaml',
        f'path: ../coco\ntrain: train2017\nval: val2017\nnames: {list("ab")}',
    )
    write(tmp_path / 'models' / 'yolov8.yaml', 'nc: 80\nbackbone: []\n')
    write(tmp_path / 'hyp.yaml', 'lr0: 0.01\n')
    write(tmp_path / 'mine' / 'fruit.yaml',
          'train: /x/images/train\nval: /x/images/val\nnames: {0: apple, 1: pear}\n')  # fmt: skip
    labels = read(tmp_path)
    assert labels.classes == ['apple', 'pear'] and splits(labels) == SPLITS


def test_settings_may_be_in_a_folder_beside_the_images(tmp_path: Path):
    fruit(tmp_path, 'images')
    write(tmp_path / 'config/val.txt', '../images/val0.jpg\n../images/val1.jpg\n')
    write(tmp_path / 'config/data.yaml', f'val: val.txt\ntrain: ../images\n{NAMES}')
    labels = read(tmp_path)
    assert splits(labels) == {'train': 6} and '2 images of val' in labels.notes[0]


@pytest.mark.parametrize('first', ['fruit.v1', ''])
def test_a_second_data_set_in_the_folder_is_named(tmp_path: Path, first: str):
    for version in (first, 'fruit.v2'):
        fruit(tmp_path / version, '{split}/images', 'valid')
        settings = 'train: ../train/images\nval: ../valid/images\n' + NAMES
        write(tmp_path / version / 'data.yaml', settings)
    write(tmp_path / first / 'part.yaml', 'train: train/images\nnames: [apple]\n')
    labels = read(tmp_path)
    assert splits(labels) == SPLITS
    (note,) = [note for note in labels.notes if 'is read, and not' in note]
    assert f'only {Path(first, "data.yaml")} is' in note and 'not fruit.v2/data.yaml: ' in note
    left = [p.file for p in labels.problems if 'none of the splits' in p.kind]
    assert len(left) == 6 and all('fruit.v2' in str(file) for file in left)


@pytest.mark.parametrize(
    'files',
    [
        {'a/data.yaml': 'names: [x, apple]\n', 'b/data.yaml': 'names: [apple, x]\n'},
        {'a/data.yaml': 'names: [x, apple]\n', 'b/classes.txt': 'apple\nx\n'},
        {'a/classes.txt': 'x\napple\n', 'b/classes.txt': 'apple\nx\n'},
        {'a/data.yaml': 'train: no\nnames: [x, apple]\n', 'b/data.yaml': 'names: {0: apple}\n'},
    ],
    ids=str,
)
def test_sets_that_were_put_together_keep_their_names(tmp_path: Path, files: dict[str, str]):
    for name, text in files.items():
        write(tmp_path / name, text)
    for folder, label in (('a', 1), ('b', 0)):
        image = draw(tmp_path / folder / 'images' / f'{folder}.jpg')
        write(tmp_path / folder / 'labels' / f'{image.stem}.txt', f'{label} 0.5 0.5 0.2 0.2\n')
    found = [item.label for image in read(tmp_path).images for item in image.objects]
    assert found == ['apple', 'apple']


def test_a_list_of_names_does_not_replace_those_of_the_settings(tmp_path: Path):
    """As labelImg writes it next to the labels, with names of another project."""
    write(fruit(tmp_path) / 'data.yaml', SETTINGS['absolute'] + NAMES)
    write(tmp_path / 'labels' / 'train' / 'classes.txt', 'dog\ncat\n')
    assert read(tmp_path).classes == ['apple', 'pear']


@pytest.mark.parametrize(
    ('text', 'why'),
    [
        (b'names:\n\t- apple\n', r"line 2: found character '\\t'"),
        (b'names: [apple, pear\ntrain: images\n', 'line 2: expected'),
        (b'names: [\xe9clair]\n', 'it is not text'),
        (
            b'x: !!python/object/apply:os.system ["touch /tmp/evil"]\n',
            'line 1: could not determine',
        ),
    ],
)
def test_settings_that_cannot_be_read(tmp_path: Path, text: bytes, why: str):
    (fruit(tmp_path) / 'data.yaml').write_bytes(text)
    with pytest.raises(UserError, match=f'data.yaml, which has names of classes, .*: {why}'):
        read(tmp_path)
    write(tmp_path / 'other.yaml', NAMES)
    labels = read(tmp_path)
    assert labels.classes == ['apple', 'pear']
    assert [p.file.name for p in labels.problems if 'cannot be read' in p.kind] == ['data.yaml']


def test_the_settings_that_were_passed_count(tmp_path: Path):
    write(fruit(tmp_path) / 'data.yaml', 'train: images/train\nval: images/val\n' + NAMES)
    mine = write(tmp_path / 'mine.yaml', 'train: images/val\nval: images/train\nnames: [a, b]\n')
    labels = read(tmp_path, mine)
    assert labels.classes == ['a', 'b'] and splits(labels) == {'train': 2, 'val': 4}


def test_a_folder_of_another_data_set_does_not_fit(tmp_path: Path):
    for version in ('fruit.v1', 'fruit.v2'):
        fruit(tmp_path / version, '{split}/images', 'valid')
        settings = 'train: ../train/images\nval: ../valid/images\n' + NAMES
        write(tmp_path / version / 'data.yaml', settings)
    shutil.rmtree(tmp_path / 'fruit.v1/valid')
    (tmp_path / 'fruit.v2/train').rename(tmp_path / 'fruit.v2/test')
    labels = read(tmp_path)
    assert splits(labels) == {'train': 4} and any('v2/data.yaml' in n for n in labels.notes)


def test_few_images_without_objects_are_usual_and_many_are_not(tmp_path: Path):
    write(fruit(tmp_path) / 'data.yaml', SETTINGS['absolute'] + NAMES)
    draw(tmp_path / 'images' / 'train' / 'background.jpg')
    labels = read(tmp_path)
    assert splits(labels) == {'train': 5, 'val': 2}
    assert not any('warning' in note for note in labels.notes)
    for i in range(8):
        draw(tmp_path / 'images' / 'train' / 'negatives' / f'{i}.jpg')
    labels = read(tmp_path)
    assert any('warning: train: 9 of 13 images (69%)' in note for note in labels.notes)


def test_predictions_are_one_line(tmp_path: Path):
    write(fruit(tmp_path) / 'data.yaml', SETTINGS['absolute'] + NAMES)
    for i in range(3):
        write(tmp_path / 'runs/detect/predict/labels' / f'train{i}.txt', '0 0.5 0.5 0.2 0.2\n')
    (tmp_path / 'labels' / 'val' / 'lost.txt').write_text('0 0.5 0.5 0.2 0.2\n')
    problems = read(tmp_path).problems
    assert [p.file.parent.name for p in problems if 'without images' in p.kind] == ['predict']
    assert [p.file.name for p in problems if 'not found' in p.kind] == ['lost.txt']


@pytest.mark.parametrize(
    ('settings', 'text'),
    [
        ('data.yaml', 'train: images/train\nval: images/val\n'),
        ('data.yaml', 'path: /home/else/fruit\ntrain: ../images/train\n'),
        ('labels/data.yaml', 'train: ../images/train\n'),
        ('labels/data.yaml', 'path: ..\ntrain: images/train\n'),
    ],
)
def test_a_data_set_by_its_settings(tmp_path: Path, capsys, settings: str, text: str):
    root = fruit(tmp_path)
    file = write(root / settings, text)
    assert run('new', [str(file), str(root / 'project')]) == 1
    assert f'is inside {root}, where' in capsys.readouterr().err


def test_settings_of_images_elsewhere_are_refused(tmp_path: Path, capsys):
    fruit(tmp_path / 'fruit')
    settings = write(tmp_path / 'a/b/data.yaml', 'path: ../../fruit\ntrain: images/train\n')
    assert run('new', [str(settings), str(tmp_path / 'project')]) == 1
    assert 'not next to it (images/train): put the file into' in capsys.readouterr().err
