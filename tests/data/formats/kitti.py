"""KITTI."""

from pathlib import Path

from labelformat.formats.kitti import KittiObjectDetectionOutput

from ..made import Sample, as_labelformat, draw_all
from ..planting import remove, replace, rewrite


def kitti(root: Path) -> Path:
    """labelformat's KITTI, with the pictures of the right camera, which have the same names."""
    draw_all(root / 'image_2')
    draw_all(root / 'image_3')
    KittiObjectDetectionOutput(root / 'label_2').save(as_labelformat())
    return root


SAMPLES = [
    Sample(
        kitti,
        faults={
            'a word for a number': rewrite('im0.txt', ' 4 ', ' left '),
            'binary': replace('im0.txt', b'\xff\xfe\x00\x81'),
            'label missing': remove('im0.txt'),
            'image missing': remove('image_2/im0.png'),
        },
        emptied={
            'empty': replace('im0.txt', b''),
        },
    ),
]
