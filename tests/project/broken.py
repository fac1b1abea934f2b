"""Faults that are planted in small data sets, as they may occur in a user's folder."""

import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from PIL import Image

from . import made

Spoil = Callable[[Path], None]

# Each entity is ten of the one before it: &j; would be a billion letters.
BILLION_LAUGHS = '<!DOCTYPE a [<!ENTITY a "x">{}]>'.format(
    ''.join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise('abcdefghij'))
)


def laugh(root: Path) -> None:
    rewrite('*.xml', '<name>.*?</name>', '<name>&j;</name>', root)
    rewrite('*.xml', '<annotation>', f'{BILLION_LAUGHS}<annotation>', root)


def first(root: Path, pattern: str) -> Path:
    return sorted(root.rglob(pattern))[0]


def rewrite(pattern: str, old: str, new: str, root: Path) -> None:
    """Replace the first match of an expression in the first file of a name."""
    file = first(root, pattern)
    text = file.read_text()
    changed = re.sub(old, lambda _: new, text, count=1, flags=re.DOTALL)
    assert changed != text, f'{old} is not in {file}'
    file.write_text(changed)


def replace(pattern: str, content: bytes, root: Path) -> None:
    first(root, pattern).write_bytes(content)


def remove(pattern: str, root: Path) -> None:
    first(root, pattern).unlink()


def cut(pattern: str, root: Path) -> None:
    file = first(root, pattern)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def resize(pattern: str, root: Path) -> None:
    file = first(root, pattern)
    Image.open(file).resize((30, 20)).save(file)


def turn(pattern: str, root: Path) -> None:
    """Give a picture an EXIF entry that rotates it."""
    file = first(root, pattern)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.open(file).save(file, exif=exif)


def copy_as(pattern: str, name: str, root: Path) -> None:
    target = root / name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(first(root, pattern), target)


def link_up(root: Path) -> None:
    (root / 'loop').symlink_to(root, target_is_directory=True)


def edit(pattern: str, change: Callable[[Any], None], root: Path) -> None:
    file = first(root, pattern)
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def put(*path: Any) -> Callable[[Any], None]:
    """Set the value at a path of keys; the last is the value."""

    def change(content: Any) -> None:
        *keys, last, value = path
        for key in keys:
            content = content[key]
        content[last] = value

    return change


def drop(*path: Any) -> Callable[[Any], None]:
    def change(content: Any) -> None:
        *keys, last = path
        for key in keys:
            content = content[key]
        del content[last]

    return change


def plant_yaml_bomb(root: Path) -> None:
    """Add a third name, which expands to 9 ** 30 letters."""
    file = root / 'data.yaml'
    bomb = ['l0: &l0 [x, x, x, x, x, x, x, x, x]']
    bomb += [f'l{i}: &l{i} [{", ".join([f"*l{i - 1}"] * 9)}]' for i in range(1, 30)]
    file.write_text('\n'.join((*bomb, file.read_text(), 'names: [cell, dot, *l29]\n')))


_XML = '<xmin>.*?</xmin>'
_POINTS = 'points="[^"]*"'
_ESCAPE = '../../../../etc/passwd.png'

_VOC: dict[str, Spoil] = {
    'cut': partial(cut, '*.xml'),
    'binary': partial(replace, '*.xml', b'<annotation>\xff\xfe\x00\x80'),
    'billion laughs': laugh,
    'an entity that is a file': partial(
        rewrite, '*.xml', '<annotation>.*?<name>.*?</name>',
        '<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]><annotation><object><name>&a;</name>',
    ),
    'corner is a word': partial(rewrite, '*.xml', _XML, '<xmin>left</xmin>'),
    'swapped corners': partial(rewrite, '*.xml', _XML, '<xmin>90</xmin>'),
    'outside': partial(rewrite, '*.xml', '<xmax>.*?</xmax>', '<xmax>500</xmax>'),
    'no class': partial(rewrite, '*.xml', '<name>.*?</name>', '<name> </name>'),
    'another size': partial(rewrite, '*.xml', '<width>.*?</width>', '<width>300</width>'),
    'size is a word': partial(rewrite, '*.xml', '<width>.*?</width>', '<width>wide</width>'),
    'path leads out': partial(
        rewrite, '*.xml', '<filename>.*?</filename>', f'<filename>{_ESCAPE}</filename>'
    ),
    'image missing': partial(remove, '*.png'),
    'image cut': partial(replace, '*.png', b'\x89PNG\r\n'),
    'image truncated': partial(cut, '*.png'),
    'label missing': partial(remove, '*.xml'),
    'image turned': partial(turn, '*.png'),
    'two images of a name': partial(copy_as, '*.png', 'other/im0.png'),
    'loop of links': link_up,
}  # fmt: skip

_COCO: dict[str, Spoil] = {
    'cut': partial(cut, '*.json'),
    'list': partial(replace, '*.json', b'["images", "annotations", "categories"]'),
    'images is a dict': partial(edit, '*.json', put('images', {})),
    'entries are words': partial(edit, '*.json', put('annotations', 0, 'box')),
    'annotation of an unknown image': partial(
        edit, '*.json', put('annotations', 0, 'image_id', 99)
    ),
    'no box': partial(edit, '*.json', drop('annotations', 0, 'bbox')),
    'neither box nor mask': partial(
        edit, '*.json', put('annotations', 0, dict(id=1, image_id=0, category_id=0))
    ),
    'image without a name': partial(edit, '*.json', drop('images', 0, 'file_name')),
    'path leads out': partial(edit, '*.json', put('images', 0, 'file_name', _ESCAPE)),
    'absolute path': partial(edit, '*.json', put('images', 0, 'file_name', '/etc/passwd.png')),
    'same image twice': partial(edit, '*.json', put('images', 1, 'file_name', 'im0.png')),
    'no size': partial(edit, '*.json', drop('images', 0, 'width')),
    'category without a name': partial(edit, '*.json', drop('categories', 0, 'name')),
    'ids are words': partial(edit, '*.json', put('images', 0, 'id', '0')),
}

_YOLO: dict[str, Spoil] = {
    'three numbers': partial(replace, 'im0.txt', b'0 0.5 0.5'),
    'even polygon': partial(replace, 'im0.txt', b'0 0.1 0.1 0.5 0.1 0.5 0.5 0.2'),
    'nan': partial(replace, 'im0.txt', b'0 nan 0.5 0.1 0.1'),
    'binary': partial(replace, 'im0.txt', b'\xff\xfe\x00\x81'),
    'with a mark of its encoding': partial(replace, 'im0.txt', b'\xef\xbb\xbf0 0.5 0.5 0.1 0.1'),
    'empty': partial(replace, 'im0.txt', b''),
    'label missing': partial(remove, 'im0.txt'),
    'image missing': partial(remove, '*.png'),
    'image cut': partial(replace, '*.png', b'\x89PNG\r\n'),
    'image truncated': partial(cut, '*.png'),
    'wrong count of names': partial(rewrite, 'data.yaml', 'nc: 2', 'nc: 9'),
    'unsafe yaml': partial(
        rewrite, 'data.yaml', '$', 'evil: !!python/object/apply:os.system ["touch /tmp/evil"]\n'
    ),
    'cut yaml': partial(replace, 'data.yaml', b'names: [cell, dot\ntrain: images'),
    'folder missing': partial(rewrite, 'data.yaml', 'train: images', 'train: nowhere'),
    'path leads out': partial(rewrite, 'data.yaml', 'train: images', 'train: ../../../../etc'),
    'absolute path': partial(rewrite, 'data.yaml', 'path: .', 'path: /datasets/mine'),
    'yaml bomb': plant_yaml_bomb,
}  # fmt: skip

_CVAT: dict[str, Spoil] = {
    'cut': partial(cut, '*.xml'),
    'points of words': partial(rewrite, '*.xml', _POINTS, 'points="a,b;c,d;e,f"'),
    'mask too short': partial(rewrite, '*.xml', 'rle="[^"]*"', 'rle="0, 7"'),
    'mask outside': partial(rewrite, '*.xml', 'left="[^"]*"', 'left="90"'),
    'no label': partial(rewrite, '*.xml', '<polygon label="cell"', '<polygon'),
    'a video': partial(rewrite, '*.xml', '</annotations>', '<track id="0"/></annotations>'),
    'another size': partial(rewrite, '*.xml', 'width="96"', 'width="300"'),
    'no name': partial(rewrite, '*.xml', 'name="im0.png"', ''),
}

_LABELME: dict[str, Spoil] = {
    'cut': partial(cut, '*.json'),
    'shapes is a dict': partial(edit, '*.json', put('shapes', {})),
    'path in a dict': partial(
        rewrite, '*.json', '"imagePath": ".*?"', '"meta": {"imagePath": "im0.png"}'
    ),
    'no label': partial(edit, '*.json', drop('shapes', 0, 'label')),
    'points of words': partial(edit, '*.json', put('shapes', 0, 'points', [['a', 'b']] * 3)),
    'a circle of three points': partial(edit, '*.json', put('shapes', 0, 'shape_type', 'circle')),
    'mask is no picture': partial(edit, '*.json', put('shapes', 1, 'mask', 'AAAA')),
    'path leads out': partial(edit, '*.json', put('imagePath', _ESCAPE)),
    'another size': partial(edit, '*.json', put('imageWidth', 300)),
}

_KERAS: dict[str, Spoil] = {
    'listed twice': partial(rewrite, '*.csv', '60,20,76,40,dot', '4,6,40,50,cell'),
    'path leads out': partial(rewrite, '*.csv', 'images/im0.png', _ESCAPE),
    'image missing': partial(remove, 'im0.png'),
    'image truncated': partial(cut, 'im0.png'),
}

_TENSORFLOW: dict[str, Spoil] = {
    'another size': partial(rewrite, 'train*.csv', 'png,96', 'png,300'),
    'size is a word': partial(rewrite, 'train*.csv', 'png,96', 'png,wide'),
    'in two splits': lambda root: rewrite('val*.csv', 'im4', 'im0', root),
}

_AUTOML: dict[str, Spoil] = {
    'in pixels': partial(rewrite, '*.csv', r'cell,[^,]*', 'cell,500'),
    'an unknown set': partial(rewrite, '*.csv', 'TRAIN', 'EXTRA'),
}

_IM0 = '_via_img_metadata', 'im0.png1000'
_REGION = *_IM0, 'regions', 0
_VIA: dict[str, Spoil] = {
    'cut': partial(cut, '*.json'),
    'list': partial(replace, '*.json', b'["regions", "file_attributes"]'),
    'image is a word': partial(edit, '*.json', put(*_IM0, 'im0.png')),
    'no name': partial(edit, '*.json', drop(*_IM0, 'filename')),
    'path leads out': partial(edit, '*.json', put(*_IM0, 'filename', _ESCAPE)),
    'region is a word': partial(edit, '*.json', put(*_REGION, 'cell')),
    'no shape': partial(edit, '*.json', drop(*_REGION, 'shape_attributes')),
    'coordinates missing': partial(
        edit, '*.json', drop(*_REGION, 'shape_attributes', 'all_points_y')
    ),
    'more x than y': partial(
        edit, '*.json', put(*_REGION, 'shape_attributes', 'all_points_x', [1] * 9)
    ),
    'points of words': partial(
        edit, '*.json', put(*_REGION, 'shape_attributes', 'all_points_x', ['a', 'b', 'c', 'd'])
    ),
    'no class': partial(edit, '*.json', drop(*_REGION, 'region_attributes', 'kind')),
    'empty class': partial(edit, '*.json', put(*_REGION, 'region_attributes', 'kind', ' ')),
    'two check boxes': partial(
        edit, '*.json', put(*_REGION, 'region_attributes', 'kind', dict(cell=True, dot=True))
    ),
    'options are a list': partial(
        edit, '*.json', put('_via_attributes', 'region', 'kind', 'options', ['cell'])
    ),
    'attributes are a list': partial(edit, '*.json', put('_via_attributes', [])),
    'image missing': partial(remove, 'im0.png'),
}

_KITTI: dict[str, Spoil] = {
    'a word for a number': partial(rewrite, 'im0.txt', ' 4 ', ' left '),
    'empty': partial(replace, 'im0.txt', b''),
    'binary': partial(replace, 'im0.txt', b'\xff\xfe\x00\x81'),
    'label missing': partial(remove, 'im0.txt'),
    'image missing': partial(remove, 'image_2/im0.png'),
}

_MASKS: dict[str, Spoil] = {
    'mask missing': partial(remove, 'masks/im0.png'),
    'mask cut': partial(cut, 'masks/im0.png'),
    'mask of a different size': partial(resize, 'masks/im0.png'),
    'mask is a photograph': partial(copy_as, 'images/*.jpg', 'masks/im0.png'),
    'image missing': partial(remove, 'images/*.jpg'),
    'image truncated': partial(cut, 'images/*.jpg'),
}

_OBJECT_MASKS: dict[str, Spoil] = {
    'mask of a different size': partial(resize, 'masks/0.png'),
    'empty mask': lambda root: Image.new('L', made.SIZE).save(first(root, 'masks/0.png')),
    'two images': lambda root: shutil.copy(
        first(root, 'images/*.png'), first(root, 'images/*.png').with_name('two.png')
    ),
}

_NUMBERED_MASKS: dict[str, Spoil] = {
    'mask cut': partial(replace, 'masks/*.tif', b'II*\0'),
    'image missing': partial(remove, 'images/im3.tif'),
}

_FOLDERS: dict[str, Spoil] = {
    'image cut': partial(replace, '*.png', b'\x89PNG\r\n'),
    'image truncated': partial(cut, '*.png'),
    'image in no class': partial(copy_as, '*.png', 'loose.png'),
    'empty class': lambda root: (root / 'third').mkdir(),
}

PLANTED = [
    *((made.voc, name, spoil) for name, spoil in _VOC.items()),
    *((made.label_studio, name, spoil) for name, spoil in _COCO.items()),
    *((made.yolo, name, spoil) for name, spoil in _YOLO.items()),
    *((made.cvat_shapes, name, spoil) for name, spoil in _CVAT.items()),
    *((made.labelme, name, spoil) for name, spoil in _LABELME.items()),
    *((made.csv_keras, name, spoil) for name, spoil in _KERAS.items()),
    *((made.csv_tensorflow, name, spoil) for name, spoil in _TENSORFLOW.items()),
    *((made.csv_automl, name, spoil) for name, spoil in _AUTOML.items()),
    *((made.via, name, spoil) for name, spoil in _VIA.items()),
    *((made.kitti, name, spoil) for name, spoil in _KITTI.items()),
    *((made.class_masks, name, spoil) for name, spoil in _MASKS.items()),
    *((made.numbered_masks, name, spoil) for name, spoil in _NUMBERED_MASKS.items()),
    *((made.object_masks, name, spoil) for name, spoil in _OBJECT_MASKS.items()),
    *((made.class_folders, name, spoil) for name, spoil in _FOLDERS.items()),
]
"""A data set, the name of a fault, and what plants it."""

HARMLESS = {
    ('voc', 'size is a word'), ('voc', 'path leads out'), ('voc', 'loop of links'),
    ('voc', 'two images of a name'),
    ('label_studio', 'no box'), ('label_studio', 'no size'), ('label_studio', 'ids are words'),
    ('yolo', 'with a mark of its encoding'), ('yolo', 'empty'), ('yolo', 'label missing'),
    ('yolo', 'wrong count of names'), ('yolo', 'cut yaml'), ('yolo', 'absolute path'),
    ('yolo', 'yaml bomb'), ('yolo', 'unsafe yaml'),
    ('csv_tensorflow', 'size is a word'), ('csv_automl', 'an unknown set'),
    ('via', 'options are a list'), ('via', 'attributes are a list'),
    ('kitti', 'empty'),
    ('class_folders', 'empty class'),
}  # fmt: skip
"""Harmless faults: all labels can still be read."""
