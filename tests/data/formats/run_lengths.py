"""Run lengths in CSV files."""

from pathlib import Path

from ..made import COUNT, HEIGHT, SIZE, Sample, boxes_of, draw_all
from ..planting import ESCAPE, remove, rewrite
from .csv import write_rows


def run_lengths(root: Path) -> Path:
    """As on Kaggle: a row for each object, with a class."""
    draw_all(root / 'train')
    height = SIZE[1]
    rows = [('ImageId', 'ClassId', 'EncodedPixels')]
    for i in range(COUNT):
        for name, (left, top, right, bottom) in boxes_of(i):
            runs = (f'{height * x + top + 1} {bottom - top}' for x in range(left, right))
            rows.append((f'im{i}.png', name, ' '.join(runs)))
    write_rows(root / 'train.csv', rows)
    write_rows(root / 'sample_submission.csv', [('ImageId', 'EncodedPixels'), ('im0.png', '1 1')])
    return root


SAMPLES = [
    Sample(
        run_lengths,
        splits={'train': COUNT},
        faults={
            'path leads out': rewrite('train.csv', 'im0.png,cell', f'{ESCAPE},cell'),
            'image missing': remove('im0.png'),
        },
    )
]

_RUNS = ' '.join(f'{HEIGHT * x + 6} 30' for x in range(10, 30))  # the box of the cat

_TABLES = {
    'without classes': f'ImageId,EncodedPixels\na.jpg,{_RUNS}\nb.jpg,\n',
    'classes after names': f'Image_Label,EncodedPixels\na.jpg_cat,{_RUNS}\nb.jpg_cat,\n',
    'other columns': f'id,rle\na,{_RUNS}\nb,\n',
    'ids of classes': f'ImageId,ClassId,EncodedPixels\na.jpg,cat,{_RUNS}\nb,cat,-1\n',
    'more columns': f'id,image_id,EncodedPixels,class\n7,a,{_RUNS},cat\n8,b,,cat\n',
    'long cells': f'ImageId,ClassId,EncodedPixels\na.jpg,cat,{_RUNS}{" " * 140_000}\nb,cat,\n',
    'an index': f'idx,image,rle\n0,a.jpg,{_RUNS}\n1,b.jpg,\n',
    'heights, and quotes': f'image_height,file_name,"RLE"\n50,a.jpg,{_RUNS}\n50,b.jpg,\n',
}

TEXTS = {kind: {'train.csv': table} for kind, table in _TABLES.items()}

WRONG = {
    runs: (
        {'train.csv': f'ImageId,ClassId,EncodedPixels\na.jpg,cat,{_RUNS}\na.jpg,dog,{runs}\nb,,\n'},
        'dog in a.jpg',
    )
    for runs in ('4990 20', '9', '1 5 3 5', 'one 5')
}
