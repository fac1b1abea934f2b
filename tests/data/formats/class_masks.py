"""Class masks: indices and colours."""

from pathlib import Path

import numpy as np
from PIL import Image

from ..made import COUNT, Sample, class_mask, draw, draw_all, has_class_masks
from ..planting import copy_as, cut, remove, resize


def class_masks(root: Path) -> Path:
    """Grey values that are indices, in images and masks."""
    draw_all(root / 'images', '.jpg')
    (root / 'masks').mkdir()
    for i in range(COUNT):
        Image.fromarray(class_mask(i)).save(root / 'masks' / f'im{i}.png')
    return root


def colour_masks(root: Path) -> Path:
    """CamVid: colours, a table, and folders of splits."""
    colours = np.array([(0, 0, 0), (64, 0, 128), (0, 0, 255)], np.uint8)
    for i in range(COUNT):
        split = 'train' if i < 4 else 'val'
        draw(root / split / f'im{i}.png', i)
        (root / f'{split}_labels').mkdir(exist_ok=True)
        Image.fromarray(colours[class_mask(i)]).save(root / f'{split}_labels' / f'im{i}_L.png')
    (root / 'class_dict.csv').write_text('name,r,g,b\nVoid,0,0,0\ncell,64,0,128\ndot,0,0,255\n')
    return root


SAMPLES = [
    Sample(
        class_masks,
        holds=has_class_masks,
        faults={
            'mask missing': remove('masks/im0.png'),
            'mask cut': cut('masks/im0.png'),
            'mask of a different size': resize('masks/im0.png'),
            'mask is a photograph': copy_as('images/*.jpg', 'masks/im0.png'),
            'image missing': remove('images/*.jpg'),
            'image truncated': cut('images/*.jpg'),
        },
    ),
    Sample(colour_masks, holds=has_class_masks, splits={'train': 4, 'val': 2}),
]
