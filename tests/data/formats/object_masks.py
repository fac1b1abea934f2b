"""One mask file for each object."""

import shutil
from pathlib import Path

import numpy as np
from PIL import Image

from ..made import COUNT, SIZE, Sample, boxes_of, draw, has_unnamed_boxes
from ..planting import first, resize


def object_masks(root: Path) -> Path:
    """As in the Data Science Bowl: <id>/images/<id>.png and <id>/masks/*.png."""
    for i in range(COUNT):
        draw(root / f'im{i}' / 'images' / f'im{i}.png', i)
        for k, (_, (left, top, right, bottom)) in enumerate(boxes_of(i)):
            pixels = np.zeros(SIZE[::-1], np.uint8)
            pixels[top:bottom, left:right] = 255
            file = root / f'im{i}' / 'masks' / f'{k}.png'
            file.parent.mkdir(exist_ok=True)
            Image.fromarray(pixels).save(file)
    return root


SAMPLES = [
    Sample(
        object_masks,
        holds=has_unnamed_boxes,
        faults={
            'mask of a different size': resize('masks/0.png'),
            'empty mask': lambda root: Image.new('L', SIZE).save(first(root, 'masks/0.png')),
            'two images': lambda root: shutil.copy(
                first(root, 'images/*.png'), first(root, 'images/*.png').with_name('two.png')
            ),
        },
    ),
]
