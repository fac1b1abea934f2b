"""Values that the loader of a config does not keep."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from ptnt_mm.utils.findings import Severity

from .spoilt import Demo


def deepen(demo: Demo, factor: int, share: float = 1.0) -> None:
    """Store the training images as 16-bit PNGs, with the values of 8 bits times a factor."""
    files = sorted((demo.folder / 'train').iterdir())
    for file in files[: round(share * len(files))]:
        values = np.asarray(Image.open(file).convert('RGB'), np.uint16)[..., ::-1] * factor
        file.write_bytes(cv2.imencode('.png', values)[1].tobytes())


def warned(demo: Demo) -> list[str]:
    found = demo.findings('images')
    assert not [finding for finding in found if finding.severity is Severity.ERROR]
    return [str(finding) for finding in found if 'grey levels' in str(finding)]


@pytest.mark.parametrize(('factor', 'left'), [(4, 4), (16, 16), (64, 64)])
def test_the_grey_levels_left_are_counted(demo: Demo, factor: int, left: int):
    deepen(demo, factor)
    (text,) = warned(demo)
    assert 'train: 16 of 16 images' in text and f'{left} of 256 grey levels' in text
    assert '16-bit, values from' in text


def test_a_range_keeps_them(demo: Demo):
    deepen(demo, 16)
    demo.set(**{'pipeline.0.type': 'LoadImageInRange', 'pipeline.0.value_range': [0, 4095]})
    assert not warned(demo)


def test_full_range_and_a_few_dark_images_are_usual(demo: Demo):
    deepen(demo, 257)
    assert not warned(demo)
    deepen(demo, 4, share=1 / 16)
    assert not warned(demo)


def test_values_outside_the_range(demo: Demo):
    deepen(demo, 64)
    demo.set(**{'pipeline.0.type': 'LoadImageInRange', 'pipeline.0.value_range': [0, 4095]})
    found = [str(f) for f in demo.findings('images') if f.severity is Severity.WARNING]
    assert len(found) == 1 and 'train: 16 of 16' in found[0] and 'loaded from 0 to 4095' in found[0]


def test_pages_that_are_not_loaded(demo: Demo):
    pages = [Image.fromarray(np.full((192, 256), value, np.uint8)) for value in (9, 99)]
    pages[0].save(demo.image('train', 3), 'TIFF', save_all=True, append_images=pages[1:])
    found = [str(f) for f in demo.findings('images') if f.severity is Severity.WARNING]
    assert len(found) == 1 and 'train: 1 of 16' in found[0] and '2 pages' in found[0]


def test_planes_of_16_bits_are_an_error(demo: Demo):
    """OpenCV and Pillow mix up their pixels."""
    import tifffile

    file: Path = demo.image('train', 3)
    planes = np.zeros((3, 192, 256), np.uint16)
    tifffile.imwrite(file, planes, photometric='rgb', planarconfig='separate')
    found = [str(f) for f in demo.findings('images') if f.severity is Severity.ERROR]
    assert len(found) == 1 and '000003.jpg (TIFF with a plane' in found[0]
