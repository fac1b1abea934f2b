"""Class folders."""

from pathlib import Path

from ..made import COUNT, NAMES, Sample, draw, has_classes
from ..planting import copy_as, cut, replace


def class_folders(root: Path) -> Path:
    """A folder for each class."""
    for i in range(COUNT * 2):
        draw(root / NAMES[i % 2] / f'im{i}.png', i)
    return root


SAMPLES = [
    Sample(
        class_folders,
        holds=has_classes,
        faults={
            'image cut': replace('*.png', b'\x89PNG\r\n'),
            'image truncated': cut('*.png'),
            'image in no class': copy_as('*.png', 'loose.png'),
        },
        harmless={
            'empty class': lambda root: (root / 'third').mkdir(),
        },
    ),
]
