"""Unusual but legal labels of every format: encodings, addresses, names, numbers after boxes."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from data.formats import SAMPLES
from data.formats.coco import one_box_each
from data.formats.labelme import labelme
from data.formats.object_masks import object_masks
from data.formats.voc import voc
from data.made import Sample, read
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.labels import LabelledObject, Labels, Outcome

from . import drawn

_TEXTS = {'.json', '.xml', '.txt', '.csv', '.yaml', '.data', '.names'}
_WITHOUT_TEXTS = ('object_masks', 'numbered_masks', 'class_masks', 'class_folders')


class Content(NamedTuple):
    """Normalise labels for comparison."""

    classes: list[str]
    images: list[tuple]
    problems: int

    @classmethod
    def of(cls, labels: Labels) -> 'Content':
        images = sorted((i.path.name, i.split or '', i.objects) for i in labels.images)
        return cls(labels.classes, images, len(labels.problems))


def objects(labels: Labels) -> list[LabelledObject]:
    return [item for image in labels.images for item in image.objects]


def rewrite(root: Path, change: Callable[[bytes], bytes]) -> None:
    for file in [file for file in root.rglob('*') if file.suffix in _TEXTS]:
        file.write_bytes(change(file.read_bytes()))


@pytest.mark.parametrize(
    'encoded',
    [
        lambda text: text.decode().encode('utf-16'),
        lambda text: b'\xfe\xff' + text.decode().encode('utf-16-be'),
        lambda text: b'\xef\xbb\xbf' + text,
        lambda text: text.replace(b'\r\n', b'\n').replace(b'\n', b'\r\n'),
    ],
    ids=['UTF-16', 'big endian', 'mark of UTF-8', 'CRLF'],
)
@pytest.mark.parametrize(
    'sample', [s for s in SAMPLES if s.name not in _WITHOUT_TEXTS], ids=lambda sample: sample.name
)
def test_an_encoding_changes_nothing(tmp_path: Path, sample: Sample, encoded: Callable):
    before = Content.of(read(sample.write(tmp_path)))
    rewrite(tmp_path, encoded)
    assert Content.of(read(tmp_path)) == before


@pytest.mark.parametrize(
    ('declared', 'encoding'),
    [('GBK', 'gbk'), ('Shift_JIS', 'shift_jis'), ('utf-16', 'utf-8'), ('ISO-8859-1', 'latin-1')],
)
def test_xml_in_the_encoding_that_it_declares(tmp_path: Path, declared: str, encoding: str):
    """.NET declares UTF-16 for texts that are saved in UTF-8."""
    name = 'Käfer' if encoding == 'latin-1' else '猫'
    before = len(objects(read(voc(tmp_path))))
    for file in tmp_path.rglob('*.xml'):
        text = file.read_text().partition('?>')[2] or file.read_text()
        text = f'<?xml version="1.0" encoding="{declared}"?>{text}'
        file.write_bytes(text.replace('>cell<', f'>{name}<').encode(encoding))
    labels = read(tmp_path)
    assert set(labels.classes) == {name, 'dot'} and len(objects(labels)) == before


def test_another_encoding_is_named_with_its_file(tmp_path: Path):
    labelme(tmp_path)
    file = next(tmp_path.rglob('im0.json'))
    file.write_bytes(file.read_bytes().replace(b'"cell"', b'"\xe4"'))
    problems = [problem for problem in read(tmp_path).problems if problem.file == file]
    assert len(problems) == 1 and 'UTF-8' in problems[0].detail


def _coco(root: Path, *names: str) -> Path:
    """A file that has other names for images than their files have."""
    lefts = {name: i for i, name in enumerate(names, start=1)}
    (root / 'labels.json').write_text(one_box_each(lefts, drawn.SIZE))
    return root


@pytest.mark.parametrize(
    ('stored', 'named'),
    [
        ('my image.jpg', 'my%20image.jpg'),
        ('my image.jpg', '/data/upload/1/my%20image.jpg'),
        ('a.jpg', 'https://host/x/a.jpg?w=3&sig=a/b#top'),
        ('a.jpg', 's3://bucket/images/a.jpg'),
        ('100%25.jpg', '100%25.jpg'),
        ('a.JPG', 'images\\a.jpg'),
        (unicodedata.normalize('NFD', 'Käfer.jpg'), unicodedata.normalize('NFC', 'Käfer.jpg')),
        (unicodedata.normalize('NFC', 'Käfer.jpg'), unicodedata.normalize('NFD', 'Käfer.jpg')),
    ],
)
def test_an_image_is_found_by_an_address_or_another_spelling(
    tmp_path: Path, stored: str, named: str
):
    drawn.put(drawn.photograph(0), tmp_path / 'images' / stored)
    (image,) = read(_coco(tmp_path, named)).images
    assert image.path.name == stored


@pytest.mark.parametrize('named', ['..%2f..%2fsecret.jpg', 'http://[a.jpg', '%00.jpg', '%.jpg'])
def test_an_address_leads_to_no_image_outside(tmp_path: Path, named: str):
    drawn.put(drawn.photograph(0), tmp_path / 'secret.jpg')
    root = tmp_path / 'data' / 'deep'
    drawn.put(drawn.photograph(1), root / 'b.jpg')
    labels = read(_coco(root, 'b.jpg', named))
    assert [image.path.name for image in labels.images] == ['b.jpg'] and len(labels.problems) == 1


def test_of_names_that_differ_in_capitals_the_exact_one_counts(tmp_path: Path):
    for i, name in enumerate(('a.jpg', 'A.jpg')):
        drawn.put(drawn.photograph(i), tmp_path / 'images' / name)
    if len(list((tmp_path / 'images').iterdir())) < 2:
        pytest.skip('this file system ignores capitals')
    labels = read(_coco(tmp_path, 'A.jpg', 'a.jpg'))
    assert {image.path.name: image.objects[0].box[0] for image in labels.images} == {
        'A.jpg': 1,
        'a.jpg': 2,
    }


@pytest.mark.parametrize('sample', SAMPLES, ids=lambda sample: sample.name)
def test_accents_of_images_and_labels_are_written_in_two_ways(tmp_path: Path, sample: Sample):
    """As after macOS packed one of them. The names of images start with 'im'."""
    before = read(sample.write(tmp_path))
    images = {image.path for image in before.images}
    composed, separate = (unicodedata.normalize(form, 'é') for form in ('NFC', 'NFD'))
    for path in sorted(tmp_path.rglob('*'), reverse=True):  # what is in a folder before it
        accent = composed if path in images else separate
        if path.suffix in _TEXTS:
            path.write_bytes(re.sub(rb'\bim(?=\d)', accent.encode(), path.read_bytes()))
        path.rename(path.with_name(re.sub(r'\bim(?=\d)', accent, path.name)))
    found = Content.of(read(tmp_path))
    names = [(name.replace(composed, 'im'), *others) for name, *others in found.images]
    assert found._replace(images=names) == Content.of(before)


@pytest.mark.parametrize('names', [('Train', 'Validation'), ('train', 'valid'), ('TRAIN', 'Val')])
def test_lists_of_splits_have_usual_names(tmp_path: Path, names: tuple[str, str]):
    voc(tmp_path)
    (lists := tmp_path / 'ImageSets' / 'Main').mkdir(parents=True)
    for name, images in zip(names, (('im0', 'IM1'), ('im2', 'im3', 'im4', 'im5')), strict=True):
        (lists / f'{name}.txt').write_text('\n'.join(images))
    (lists / 'cat_train.txt').write_text('im3 1\n')  # of a class, as VOC has them
    labels = read(tmp_path)
    assert not labels.problems
    splits = {image.path.stem: image.split for image in labels.images}
    assert splits == dict(
        im0='train', im1='train', **dict.fromkeys(('im2', 'im3', 'im4', 'im5'), 'val')
    )


def test_lists_with_the_usual_names_come_first(tmp_path: Path):
    voc(tmp_path)
    (lists := tmp_path / 'ImageSets' / 'Main').mkdir(parents=True)
    for name, images in dict(train='0123', val='45', dev='0', train_2='5').items():
        (lists / f'{name}.txt').write_text('\n'.join(f'im{i}' for i in images))
    labels = read(tmp_path)
    assert not labels.problems
    assert [image.split for image in labels.images] == ['train'] * 4 + ['val'] * 2


def test_names_that_differ_only_in_capitals_are_two(tmp_path: Path):
    (lists := tmp_path / 'ImageSets' / 'Main').mkdir(parents=True)
    voc(tmp_path)
    for folder, suffix in (('JPEGImages', 'png'), ('Annotations', 'xml')):
        for i in range(2):
            file = tmp_path / folder / f'im{i}.{suffix}'
            file.with_name(f'IM{i}.{suffix}').write_bytes(file.read_bytes().replace(b'im', b'IM'))
    (lists / 'train.txt').write_text('im0\nim1\n')
    (lists / 'val.txt').write_text('IM0\nIM1\n')
    splits = {image.path.stem: image.split for image in read(tmp_path).images}
    assert splits == dict(im0='train', im1='train', IM0='val', IM1='val')


def test_a_folder_counts_and_not_a_link_to_it(tmp_path: Path):
    """The names of folders may be those of classes."""
    for i, name in enumerate(('cat', 'dog')):
        for number in range(2):
            drawn.put(drawn.photograph(2 * i + number), tmp_path / name / f'{number}.png')
    (tmp_path / 'also').symlink_to(tmp_path / 'dog')
    (tmp_path / 'cat' / 'inside').symlink_to(tmp_path / 'dog')
    labels = read(tmp_path)
    assert labels.classes == ['cat', 'dog'] and len(labels.images) == 4


def test_images_behind_links_are_read(tmp_path: Path):
    drawn.put(drawn.photograph(0), tmp_path / 'elsewhere' / 'a.jpg')
    (root := tmp_path / 'data').mkdir()
    (root / 'images').symlink_to(tmp_path / 'elsewhere')
    (image,) = read(_coco(root, 'a.jpg')).images
    assert image.path == root / 'images' / 'a.jpg'


def _yolo(root: Path, lines: Sequence[str], names: str = '[cat, dog]', files: int = 3) -> Path:
    for i in range(files):
        drawn.put(drawn.photograph(i), root / 'images' / f'{i}.jpg')
        (root / 'labels').mkdir(exist_ok=True)
        (root / 'labels' / f'{i}.txt').write_text('\n'.join(lines) + '\n')
    if names:
        (root / 'data.yaml').write_text(f'train: images\nnames: {names}\n')
    return root


@pytest.mark.parametrize(
    ('names', 'expected'),
    [
        ('[no, yes, on]', ['no', 'yes', 'on']),
        ('[007, 010, 1e3]', ['007', '010', '1e3']),
        ('[2024-01-01, 1.50, 12:30]', ['2024-01-01', '1.50', '12:30']),
        ('{0: 1, 1: "a, b", 2: "\\U0001F431"}', ['1', 'a, b', '🐱']),
        ("{'0': cat, '1': dog, '2': 3_000}", ['cat', 'dog', '3_000']),
    ],
)
def test_names_in_yaml_are_read_as_they_are_written(tmp_path: Path, names: str, expected: list):
    labels = read(_yolo(tmp_path, ['2 0.5 0.5 0.2 0.6'], names))
    assert labels.classes == expected and {o.label for o in objects(labels)} == {expected[2]}


def test_classes_of_one_name_are_noted(tmp_path: Path):
    labels = read(_yolo(tmp_path, ['0 0.5 0.5 0.2 0.6', '1 0.2 0.5 0.2 0.6'], '[cat, cat]'))
    assert labels.classes == ['cat'] and any('cat' in note for note in labels.notes)


def test_classes_without_names_are_in_the_order_of_their_numbers(tmp_path: Path):
    labels = read(_yolo(tmp_path, [f'{i} 0.5 0.5 0.2 0.{i}' for i in (10, 2, 1)], names=''))
    assert labels.classes == ['class 1', 'class 2', 'class 10']


def test_a_line_without_a_name_has_a_number_too(tmp_path: Path):
    _yolo(tmp_path, ['2 0.5 0.5 0.2 0.6', '1 0.2 0.5 0.2 0.6'], names='')
    (tmp_path / 'classes.txt').write_text('\ncat\n\ndog\n\n')
    labels = read(tmp_path)
    assert {item.label for item in objects(labels)} == {'dog'}
    assert {problem.label for problem in labels.problems} == {'class 1'}


def test_a_line_without_a_name_is_a_value_of_masks_too(tmp_path: Path):
    for i in range(4):
        drawn.put(drawn.photograph(i, 2), tmp_path / 'images' / f'{i}.jpg')
        drawn.put(Image.fromarray(drawn.indices(i, 2)), tmp_path / 'masks' / f'{i}.png')
    (tmp_path / 'classes.txt').write_text('sky\n\ndog\n')
    labels = read(tmp_path)
    assert labels.classes == ['sky', 'class 1', 'dog']
    assert labels.mask_indices == {0: 0, 1: 1, 2: 2}


def test_the_first_class_of_a_colour_counts(tmp_path: Path):
    for i in range(4):
        drawn.put(drawn.photograph(i, 1), tmp_path / 'images' / f'{i}.jpg')
        colours = drawn.COLOURS[drawn.indices(i, 1)]
        drawn.put(Image.fromarray(colours), tmp_path / 'masks' / f'{i}.png')
    table = 'name,r,g,b\nground,0,0,0\ncat,128,0,0\ndog,128,0,0\n'
    (tmp_path / 'class_dict.csv').write_text(table)
    labels = read(tmp_path)
    assert labels.classes == ['ground', 'cat'] and any('dog' in note for note in labels.notes)


def test_masks_of_one_value_are_noted(tmp_path: Path):
    """As of drawings in the alpha channel."""
    for i in range(4):
        drawn.put(drawn.photograph(i), tmp_path / 'images' / f'{i}.jpg')
        pixels = np.zeros((*drawn.SIZE[::-1], 4), np.uint8)
        pixels[..., 3] = 255 * drawn.indices(i, 1)
        drawn.put(Image.fromarray(pixels), tmp_path / 'masks' / f'{i}.png')
    assert [note for note in read(tmp_path).notes if note.startswith('warning')]


@pytest.mark.parametrize('is_inverted', [False, True])
def test_class_masks_that_are_mostly_white_are_noted(tmp_path: Path, is_inverted: bool):
    for i in range(4):
        drawn.put(drawn.photograph(i, 1), tmp_path / 'images' / f'{i}.jpg')
        mask = Image.fromarray(np.uint8(255 * ((drawn.indices(i, 1) > 0) != is_inverted)))
        drawn.put(mask, tmp_path / 'masks' / f'{i}.png')
    assert len(read(tmp_path).notes) == is_inverted


@pytest.mark.parametrize('is_inverted', [False, True])
def test_object_masks_with_black_objects_are_noted(tmp_path: Path, is_inverted: bool):
    object_masks(tmp_path)
    if is_inverted:
        for file in tmp_path.rglob('masks/*'):
            with Image.open(file) as mask:
                mask.convert('L').point(lambda value: 255 - value).save(file)
    noted = [note for note in read(tmp_path).notes if note.startswith('warning')]
    assert len(noted) == is_inverted


def test_a_label_file_of_two_images_is_reported(tmp_path: Path):
    _yolo(tmp_path, ['0 0.5 0.5 0.2 0.6'])
    drawn.put(drawn.photograph(9), tmp_path / 'images' / '0.png')
    labels = read(tmp_path)
    (problem,) = labels.problems
    assert len(labels.images) == 4 and problem.file.name == '0.txt'
    assert problem.outcome is Outcome.KEPT and '0.png' in problem.detail


_BOX = (32.0, 12.8, 16.0, 38.4)  # of the lines below


@pytest.mark.parametrize(
    'more',
    [
        pytest.param(lambda i: '0.9', id='score'),
        pytest.param(lambda i: f'0.9 {i}', id='score and track'),
        pytest.param(lambda i: f'0.{41 + i} 0.4 2 0.55 0.4 1 0 0 0', id='keypoints with flags'),
        pytest.param(lambda i: f'0.{41 + i} 0.4 0.55 0.4 0.5 0.7', id='keypoints'),
    ],
)
def test_numbers_after_a_box_are_not_read(tmp_path: Path, more: Callable[[int], str]):
    lines = [f'0 0.5 0.5 0.2 0.6 {more(i)}' for i in range(4)]
    labels = read(_yolo(tmp_path, lines))
    assert {item.segmentation for item in objects(labels)} == {None}
    assert objects(labels)[0].box == pytest.approx(_BOX)
    left_out = [p for p in labels.problems if p.outcome is not Outcome.IN_PART]
    assert {p.kind for p in left_out} <= {'objects listed twice'}  # the lines have one box
    noted = any(note.startswith('warning') for note in labels.notes)
    assert noted or len(labels.problems) > len(left_out)


@pytest.mark.parametrize(
    ('old', 'new', 'note'),
    [
        ('class', 'species', "all objects are 'object'; not used: species"),
        ('TRAIN', 'holdout', 'not used: holdout (1 image)'),
        ('', '', ''),
    ],
)
def test_columns_of_a_table_that_are_not_used(tmp_path: Path, old: str, new: str, note: str):
    for name in 'ab':
        Image.new('RGB', (64, 48)).save(tmp_path / f'{name}.png')
    rows = (
        'filename,class,split,xmin,ymin,xmax,ymax',
        'a.png,cat,TRAIN,1,1,9,9',
        'b.png,cat,,1,1,9,9',
    )
    (tmp_path / 'boxes.csv').write_text('\n'.join(rows).replace(old, new))
    labels = read(tmp_path)
    assert len(objects(labels)) == 2
    assert [line for line in labels.notes if note in line] == labels.notes and bool(note) == bool(
        labels.notes
    )


@pytest.mark.parametrize('line', ['b.png,,,,,', 'b.png,none,,,,'])
def test_rows_without_corners_are_images_without_objects(tmp_path: Path, line: str):
    for name in 'ab':
        Image.new('RGB', (64, 48)).save(tmp_path / f'{name}.png')
    rows = ('sep=,', 'filename,class,xmin,ymin,xmax,ymax', 'a.png,cat,1,1,9,9', line)
    (tmp_path / 'boxes.csv').write_text('\n'.join(rows))  # the first line is for Excel
    labels = read(tmp_path)
    assert [len(image.objects) for image in labels.images] == [1, 0] and not labels.problems
    assert labels.classes == ['cat'] and ('none (1)' in ''.join(labels.notes)) == ('none' in line)


@pytest.mark.parametrize('line', ['b.png', 'b.png,ca', 'b.png,dog,,,'])
def test_a_row_that_was_cut_off_is_no_image_without_objects(tmp_path: Path, line: str):
    for name in 'ab':
        Image.new('RGB', (64, 48)).save(tmp_path / f'{name}.png')
    rows = ('filename,class,xmin,ymin,xmax,ymax', 'a.png,cat,1,1,9,9', line)
    (tmp_path / 'boxes.csv').write_text('\n'.join(rows))
    labels = read(tmp_path)
    assert [image.path.name for image in labels.images] == ['a.png']
    assert any('different number of columns' in problem.title for problem in labels.problems)


def test_files_beside_those_of_instances_are_named(tmp_path: Path):
    for name in 'ab':
        Image.new('RGB', (64, 48)).save(tmp_path / f'{name}.png')
        (tmp_path / f'{name}.json').write_text(one_box_each({f'{name}.png': 9}))
    assert not read(tmp_path).notes
    (tmp_path / 'a.json').rename(tmp_path / 'instances_a.json')
    expected = ['not read, because other files are named instances: b.json']
    assert read(tmp_path).notes == expected


def test_names_of_classes_as_roboflow_writes_them_for_darknet(tmp_path: Path):
    _yolo(tmp_path, ['1 0.5 0.5 0.2 0.2'], names='')
    (tmp_path / 'labels' / '_darknet.labels').write_text('cat\ndog\n')
    labels = read(tmp_path)
    assert labels.classes == ['cat', 'dog'] and {item.label for item in objects(labels)} == {'dog'}


def test_a_list_of_empty_polygons_is_no_mask(tmp_path: Path):
    Image.new('RGB', (64, 48)).save(tmp_path / 'a.png')
    content = one_box_each({'a.png': 9}).replace('"bbox"', '"segmentation": [[]], "bbox"')
    (tmp_path / 'labels.json').write_text(content)
    labels = read(tmp_path)
    assert not labels.problems and not any(item.segmentation for item in objects(labels))


def test_polygons_are_no_keypoints(tmp_path: Path):
    """Rectangles in any part of the image, from any corner."""
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(12):
        left, top = rng.uniform(0, 0.7, 2)
        right, bottom = (left, top) + rng.uniform(0.1, 0.25, 2)
        points = [(left, top), (right, top), (right, bottom), (left, bottom)]
        turned = np.roll(points, rng.integers(4), axis=0).ravel()
        lines.append(' '.join(['0', *(f'{value:.4f}' for value in turned)]))
    labels = read(_yolo(tmp_path, lines))
    assert all(item.segmentation for item in objects(labels)) and len(objects(labels)) == 36
    triangles = read(_yolo(tmp_path, ['0 0.1 0.1 0.9 0.2 0.5 1']))
    assert all(item.segmentation for item in objects(triangles))


@pytest.mark.parametrize('value', ['1', ' 1 ', 'True', '1.0', '0', 'False', '', 'Unspecified'])
def test_flags_as_text(tmp_path: Path, value: str):
    voc(tmp_path)
    file = next(tmp_path.rglob('im0.xml'))
    text = file.read_text().replace('<difficult>0', f'<difficult>{value}', 1)
    file.write_text(text)
    ignored = [item.ignored for item in objects(read(tmp_path)) if item.ignored]
    assert ignored == (['difficult'] if value.strip() in ('1', 'True', '1.0') else [])


def test_shares_of_the_image_in_voc_are_named(tmp_path: Path):
    """They are checked after half a pixel was subtracted."""
    voc(tmp_path)
    for file in tmp_path.rglob('*.xml'):
        text = file.read_text()
        for tag, value in zip(('xmin', 'ymin', 'xmax', 'ymax'), (0.1, 0.2, 0.5, 0.9), strict=True):
            head, *rest = text.split(f'<{tag}>')
            text = head + ''.join(f'<{tag}>{value}<{part.partition("<")[2]}' for part in rest)
        file.write_text(text)
    with pytest.raises(UserError, match='between 0 and 1'):
        read(tmp_path)


def test_of_two_columns_of_classes_that_with_names_counts(tmp_path: Path):
    for i in range(2):
        drawn.put(drawn.photograph(i), tmp_path / f'{i}.jpg')
    rows = ['filename,label,class,xmin,ymin,xmax,ymax', '0.jpg,cat,1,10,5,30,35']
    (tmp_path / 'boxes.csv').write_text('\n'.join([*rows, '1.jpg,dog,2,10,5,30,35']))
    assert read(tmp_path).classes == ['cat', 'dog']


def test_classes_that_differ_only_in_spaces_are_noted(tmp_path: Path):
    labels = read(_yolo(tmp_path, ['0 0.5 0.5 0.2 0.6'], '[ice cream, Icecream]'))
    assert any("'Icecream'" in note for note in labels.notes)


def test_a_file_that_was_read_is_not_offered_as_another_format(tmp_path: Path):
    drawn.put(drawn.photograph(0), tmp_path / 'a.jpg')
    drawn.put(drawn.photograph(1), tmp_path / 'b.jpg')
    file = _coco(tmp_path, 'a.jpg', 'b.jpg') / 'labels.json'
    file.write_text(file.read_text().replace('bbox', 'box'))
    with pytest.raises(UserError) as refused:
        read(tmp_path)
    assert 'labels.json' in str(refused.value) and 'CSV' not in str(refused.value)
