"""CSV tables of boxes."""

import csv
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from ..made import (
    COUNT,
    SIZE,
    Sample,
    boxes_of,
    draw_all,
)
from ..planting import (
    ESCAPE,
    cut,
    remove,
    rewrite,
)


def write_rows(file: Path, rows: Iterable[Sequence], delimiter: str = ',') -> Path:
    with file.open('w', newline='') as stream:
        csv.writer(stream, delimiter=delimiter).writerows(rows)
    return file


def csv_tensorflow(root: Path) -> Path:
    """The header of TensorFlow's scripts, in files called after their split."""
    draw_all(root / 'images')
    header = ['filename', 'width', 'height', 'class', 'xmin', 'ymin', 'xmax', 'ymax']
    for split, numbers in (('train', range(4)), ('val', range(4, COUNT))):
        rows = [(f'im{i}.png', *SIZE, name, *box) for i in numbers for name, box in boxes_of(i)]
        write_rows(root / f'{split}_labels.csv', [header, *rows])
    return root


def csv_keras(root: Path) -> Path:
    """keras-retinanet: no header; an image without objects is not in the other tests' count."""
    draw_all(root / 'images')
    rows = [(f'images/im{i}.png', *box, name) for i in range(COUNT) for name, box in boxes_of(i)]
    write_rows(root / 'annotations.csv', rows)
    return root


def csv_spreadsheet(root: Path) -> Path:
    """A table in any order, as a European spreadsheet saves it: semicolons, a mark, CRLF."""
    draw_all(root / 'images')
    rows = [(box[3], name, *box[:3], f'im{i}') for i in range(COUNT) for name, box in boxes_of(i)]
    file = write_rows(
        root / 'table.csv', [('Y max', 'Label', 'X_min', 'Y_min', 'X_max', 'Image ID'), *rows], ';'
    )
    file.write_bytes(b'\xef\xbb\xbf' + file.read_bytes())
    return root


def csv_automl(root: Path) -> Path:
    """Google AutoML: the set, an address, shares of the image; two corners, or all four."""
    draw_all(root / 'images')
    rows = []
    for i in range(COUNT):
        for name, corners in boxes_of(i):
            left, top, right, bottom = (value / SIZE[k % 2] for k, value in enumerate(corners))
            others = (right, top), (left, bottom)
            (x2, y2), (x4, y4) = others if i else (('', ''), ('', ''))
            where = ('TRAIN' if i < 4 else 'VALIDATE', f'gs://bucket/set/im{i}.png', name)
            rows.append((*where, left, top, x2, y2, right, bottom, x4, y4))
    write_rows(root / 'export.csv', rows)
    return root


SAMPLES = [
    Sample(
        csv_tensorflow,
        splits={'train': 4, 'val': 2},
        faults={
            'another size': partial(rewrite, 'train*.csv', 'png,96', 'png,300'),
            'in two splits': lambda root: rewrite('val*.csv', 'im4', 'im0', root),
        },
        harmless={
            'size is a word': partial(rewrite, 'train*.csv', 'png,96', 'png,wide'),
        },
    ),
    Sample(
        csv_keras,
        faults={
            'listed twice': partial(rewrite, '*.csv', '60,20,76,40,dot', '4,6,40,50,cell'),
            'path leads out': partial(rewrite, '*.csv', 'images/im0.png', ESCAPE),
            'image missing': partial(remove, 'im0.png'),
            'image truncated': partial(cut, 'im0.png'),
        },
    ),
    Sample(csv_spreadsheet),
    Sample(
        csv_automl,
        splits={'train': 4, 'val': 2},
        faults={
            'in pixels': partial(rewrite, '*.csv', r'cell,[^,]*', 'cell,500'),
        },
        harmless={
            'an unknown set': partial(rewrite, '*.csv', 'TRAIN', 'EXTRA'),
        },
    ),
]
