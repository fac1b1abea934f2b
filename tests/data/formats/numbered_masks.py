"""Masks in which each number is one object."""

from pathlib import Path

import numpy as np
from PIL import Image

from ..made import COUNT, SIZE, Sample, boxes_of, draw_all, has_unnamed_boxes
from ..planting import remove, replace


def numbered_masks(root: Path) -> Path:
    """As for Cellpose and StarDist: 16 bits, a number for each object."""
    draw_all(root / 'images', '.tif')
    (root / 'masks').mkdir()
    for i in range(COUNT):
        pixels = np.zeros(SIZE[::-1], np.uint16)
        for number, (_, (left, top, right, bottom)) in enumerate(boxes_of(i), start=255):
            pixels[top:bottom, left:right] = number
        Image.fromarray(pixels).save(root / 'masks' / f'im{i}.tif')
    return root


SAMPLES = [
    Sample(
        numbered_masks,
        holds=has_unnamed_boxes,
        faults={
            'mask cut': replace('masks/*.tif', b'II*\0'),
            'image missing': remove('images/im3.tif'),
        },
    ),
]
