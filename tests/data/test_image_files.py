"""Finding, reading and encoding image files."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from inference.samples import photograph
from PIL import Image

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.image_files import (
    decoded,
    drawn_name,
    encode_image,
    find_images,
    read_image,
    size_as_read,
)

PIXELS = photograph(12, 20)


def test_pixels_are_those_that_opencv_reads(tmp_path: Path):
    file = tmp_path / 'x.png'
    Image.fromarray(PIXELS).save(file)
    np.testing.assert_array_equal(read_image(file), cv2.imread(str(file)))


@pytest.mark.parametrize('orientation', [0, 9, 255, 65535, 3, 6])
def test_an_orientation_that_exif_does_not_define_is_upright(tmp_path: Path, orientation: int):
    """As for OpenCV; cameras and editors write 0."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = tmp_path / 'x.jpg'
    Image.fromarray(PIXELS).save(file, exif=exif)
    valid = orientation in (3, 6)
    assert decoded(file) == ('', (20, 12), orientation if valid else 1)
    height, width = cv2.imread(str(file)).shape[:2]
    assert size_as_read(file) == (width, height)
    assert read_image(file).shape[:2] == (height, width)


def test_images_of_a_folder(tmp_path: Path):
    for name in ('b.JPG', 'a/b.png', 'a/notes.txt', '.hidden/c.png', '._b.jpg', 'out/drawn/b.JPG'):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    images = find_images(tmp_path, without=tmp_path / 'out')
    assert [name.as_posix() for name in images.files] == ['a/b.png', 'b.JPG']
    assert [name.as_posix() for name in images.skipped] == ['a/notes.txt']
    with pytest.raises(UserError, match=r'contains no images and 1 other file:.*\.webp'):
        find_images(tmp_path / 'a', without=tmp_path / 'a' / 'b.png')


def test_links_are_followed_once_and_earlier_results_left_out(tmp_path: Path):
    for name in ('in/a/1.png', 'elsewhere/2.png', 'in/found/drawn/1.png', 'in/drawn/3.png'):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / 'in/found/predictions.json').write_text('{"format": "ptnt_mm predictions 1"}')
    (tmp_path / 'in/a/linked').symlink_to(tmp_path / 'elsewhere')
    (tmp_path / 'elsewhere/loop').symlink_to(tmp_path / 'in')
    (tmp_path / 'in/a/up').symlink_to(tmp_path)
    (tmp_path / 'in/a/linked too').symlink_to(tmp_path / 'elsewhere')
    files = [name.as_posix() for name in find_images(tmp_path / 'in').files]
    assert files == ['a/1.png', 'a/linked/2.png', 'drawn/3.png']
    with pytest.raises(UserError, match='found contains only results of ptnt infer'):
        find_images(tmp_path / 'in' / 'found')


@pytest.mark.parametrize('name', ['x.jpg', 'x.PNG', 'x.pgm', 'x.tiff', 'x.webp', 'x.bmp', 'x'])
def test_what_is_drawn_can_be_read_again(name: str, tmp_path: Path):
    file = drawn_name(tmp_path / name)
    file.write_bytes(encode_image(PIXELS, file.suffix))
    read = read_image(file)
    assert read.shape == PIXELS.shape
    if file.suffix.lower() in ('.png', '.pgm', '.tiff', '.bmp'):
        np.testing.assert_array_equal(read, PIXELS)
    assert file.name == (name if '.' in name else 'x.png')
