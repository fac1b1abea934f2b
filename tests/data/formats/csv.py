"""CSV tables of boxes."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..made import COUNT, SIZE, Sample, boxes_of, draw_all
from ..planting import ESCAPE, cut, remove, rewrite


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
            'another size': rewrite('train*.csv', 'png,96', 'png,300'),
            'in two splits': rewrite('val*.csv', 'im4', 'im0'),
        },
        harmless={
            'size is a word': rewrite('train*.csv', 'png,96', 'png,wide'),
        },
    ),
    Sample(
        csv_keras,
        faults={
            'listed twice': rewrite('*.csv', '60,20,76,40,dot', '4,6,40,50,cell'),
            'path leads out': rewrite('*.csv', 'images/im0.png', ESCAPE),
            'image missing': remove('im0.png'),
            'image truncated': cut('im0.png'),
        },
    ),
    Sample(csv_spreadsheet),
    Sample(
        csv_automl,
        splits={'train': 4, 'val': 2},
        faults={
            'in pixels': rewrite('*.csv', r'cell,[^,]*', 'cell,500'),
        },
        harmless={
            'an unknown set': rewrite('*.csv', 'TRAIN', 'EXTRA'),
        },
    ),
]

_TABLES = {
    "keras-retinanet's": b'a.jpg,10,5,30,35,cat\nb.jpg,,,,,\n',
    "TensorFlow's": b'filename,width,height,class,xmin,ymin,xmax,ymax\n'
    b'a.jpg,100,50,cat,10,5,30,35\nb.jpg,100,50,,,,,\n',
    "TensorFlow's without its header": b'a.jpg,100,50,cat,10,5,30,35\nb.jpg,100,50,,,,,\n',
    "SKU-110K's": b'a.jpg,10,5,30,35,cat,100,50\nb.jpg,,,,,,100,50\n',
    "AutoML's": b'TRAIN,gs://x/a.jpg,cat,0.1,0.1,,,0.3,0.7,,\nTEST,gs://x/b.jpg,,,,,,,,,\n',
    "AutoML's, all corners": b',gs://x/a.jpg,cat,.1,.1,.3,.1,.3,.7,.1,.7\n,gs://x/b.jpg,,,,,,,,,\n',
    "AutoML's without sets": b'gs://x/a.jpg,cat,0.1,0.1,,,0.3,0.7,,\ngs://x/b.jpg,,,,,,,,,\n',
    'in any order': b'ymax,xmax,Label,ymin,xmin,Image Path\n35,30,cat,5,10,C:\\data\\a.jpg\n'
    b',,,,,b.jpg\n',
    'with more columns': b'id,image,x1,y1,x2,y2,label,by\n1,a.jpg,10,5,30,35,cat,me\n'
    b'2,b.jpg,,,,,,me\n',
    'with ids too': b'image_id,file_name,class_id,class_name,x1,y1,x2,y2\n'
    b'7,a.jpg,3,cat,10,5,30,35\n8,b.jpg,,,,,,\n',
    'with semicolons and decimal commas': b'file;x1;y1;x2;y2;class\na.jpg;10,0;5,0;30,0;35,0;cat\n'
    b'b.jpg;;;;;\n',
    'with tabs': b'file\tx1\ty1\tx2\ty2\tclass\na.jpg\t10\t5\t30\t35\tcat\nb.jpg\t\t\t\t\t\n',
    'with quotes, spaces and CRLF': b'"a.jpg", 10, 5, 30, 35, "cat"\r\n\r\n"b.jpg", , , , , \r\n',
    'with a mark of UTF-8': b'\xef\xbb\xbfa.jpg,10,5,30,35,cat\nb.jpg,,,,,\n',
    'in UTF-16': 'file\tx1\ty1\tx2\ty2\tclass\na.jpg\t10\t5\t30\t35\tcat\nb.jpg\t\t\t\t\t\n'.encode(
        'utf-16'
    ),
}

TEXTS = {kind: {'boxes.csv': table} for kind, table in _TABLES.items()}

_WRONG = {
    'a.jpg,10,5,30': 'line 3',
    'a.jpg,10,5,30,35,dog,dog': 'line 3',
    'a.jpg,ten,5,30,35,dog': 'ten',
    'a.jpg,10,,30,35,dog': 'dog',
    'a.jpg,,,,,dog': 'dog',
    'a.jpg,10,5,30,35,': 'line 3',
    'a.jpg,nan,5,30,35,dog': 'nan',
    'a.jpg,30,35,10,5,dog': 'dog',
    'a.jpg,300,300,400,400,dog': 'dog',
    'a.jpg,10,5,300,35,dog': 'dog',
    'lost.jpg,10,5,30,35,dog': 'lost.jpg',
    ',10,5,30,35,dog': 'line 3',
}
"""Third rows of a table, and a part of what is said of each."""

WRONG = {
    row: ({'boxes.csv': f'a.jpg,10,5,30,35,cat\nb.jpg,10,5,30,35,cat\n{row}\n'}, named)
    for row, named in _WRONG.items()
}
