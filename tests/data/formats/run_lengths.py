"""Run lengths in CSV files."""

from functools import partial
from pathlib import Path

from ..made import COUNT, SIZE, Sample, boxes_of, draw_all
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


_FIRST = 'cell,[^\n\r]*'

SAMPLES = [
    Sample(
        run_lengths,
        splits={'train': COUNT},
        faults={
            'an odd number': partial(rewrite, 'train.csv', _FIRST, 'cell,1 5 9'),
            'a word': partial(rewrite, 'train.csv', _FIRST, 'cell,1 five'),
            'overlapping runs': partial(rewrite, 'train.csv', _FIRST, 'cell,1 5 3 5'),
            'outside': partial(rewrite, 'train.csv', _FIRST, 'cell,6140 90'),
            'path leads out': partial(rewrite, 'train.csv', 'im0.png,cell', f'{ESCAPE},cell'),
            'image missing': partial(remove, 'im0.png'),
        },
    )
]
