"""Finding and reading image files."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from ptnt_mm.inference.images import drawn_name, encode_image, find_images, read_image
from ptnt_mm.utils.errors import UserError

from .samples import photograph

PIXELS = photograph(12, 20)
GREY = PIXELS[..., 0]


def saved(image: np.ndarray | Image.Image, file: Path, **options) -> Path:
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    image.save(file, **options)
    return file


def test_sixteen_bits_are_scaled_and_not_cut_off(tmp_path: Path):
    grey = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    read = read_image(saved(grey, tmp_path / 'grey.png'))
    np.testing.assert_array_equal(read[..., 0], np.round(grey / 257))
    cv2.imwrite(str(tmp_path / 'colour.png'), PIXELS[..., ::-1].astype(np.uint16) * 257)
    np.testing.assert_array_equal(read_image(tmp_path / 'colour.png'), PIXELS[..., ::-1])


@pytest.mark.parametrize(
    ('image', 'rgb'),
    [
        (GREY, np.dstack([GREY] * 3)),
        (np.dstack([PIXELS, GREY]), PIXELS),
        (np.dstack([GREY, GREY[::-1]]), np.dstack([GREY] * 3)),
        (Image.fromarray(PIXELS // 128 * 255).convert('P'), PIXELS // 128 * 255),
        (Image.fromarray(GREY > 99), np.dstack([(GREY > 99) * np.uint8(255)] * 3)),
    ],
    ids=['grey', 'RGBA', 'grey with alpha', 'palette', 'one bit'],
)
def test_other_kinds_of_pixels(image: np.ndarray | Image.Image, rgb: np.ndarray, tmp_path: Path):
    np.testing.assert_array_equal(read_image(saved(image, tmp_path / 'x.png')), rgb[..., ::-1])


@pytest.mark.parametrize('suffix', ['.jpg', '.png', '.bmp', '.ppm', '.webp', '.tif'])
def test_pixels_are_those_that_the_hosts_load(suffix: str, tmp_path: Path):
    file = saved(photograph(90, 121), tmp_path / f'x{suffix}')
    np.testing.assert_array_equal(read_image(file), cv2.imread(str(file)))


def test_photographs_stand_upright(tmp_path: Path):
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    file = saved(PIXELS, tmp_path / 'x.jpg', exif=exif)
    assert read_image(file).shape == (20, 12, 3)
    np.testing.assert_array_equal(read_image(file), cv2.imread(str(file)))


def test_damaged_files_are_refused(tmp_path: Path):
    for suffix in ('.jpg', '.png'):
        file = saved(photograph(90, 120), tmp_path / f'cut{suffix}')
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        with pytest.raises(UserError, match=rf'^{file} cannot be read: .*truncated'):
            read_image(file)
    for content, message in ((b'', 'is empty'), (b'notes', 'is no image, or damaged')):
        (tmp_path / 'x.png').write_bytes(content)
        with pytest.raises(UserError, match=f'^{tmp_path}/x.png {message}$'):
            read_image(tmp_path / 'x.png')
    file = saved(GREY.astype(np.float32), tmp_path / 'x.tif')
    with pytest.raises(UserError, match=f'^{file} cannot .* pixels of float32: expected 8 or 16'):
        read_image(file)


def test_postscript_is_not_run(tmp_path: Path):
    (tmp_path / 'x.png').write_bytes(b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EOF\n')
    with pytest.raises(UserError, match='is no image'):
        read_image(tmp_path / 'x.png')


def test_images_of_a_folder(tmp_path: Path):
    for name in ('b.JPG', 'a/b.png', 'a/notes.txt', '.hidden/c.png', '._b.jpg', 'out/drawn/b.JPG'):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    images = find_images(tmp_path, without=tmp_path / 'out')
    assert [name.as_posix() for name in images.files] == ['a/b.png', 'b.JPG']
    assert [name.as_posix() for name in images.skipped] == ['a/notes.txt']
    with pytest.raises(UserError, match=r'holds no images and 1 other files.*\.webp'):
        find_images(tmp_path / 'a', without=tmp_path / 'a' / 'b.png')


@pytest.mark.parametrize('name', ['x.jpg', 'x.PNG', 'x.pgm', 'x.tiff', 'x.webp', 'x.bmp', 'x'])
def test_what_is_drawn_can_be_read_again(name: str, tmp_path: Path):
    file = drawn_name(tmp_path / name)
    file.write_bytes(encode_image(PIXELS, file.suffix))
    read = read_image(file)
    assert read.shape == PIXELS.shape
    if file.suffix.lower() in ('.png', '.pgm', '.tiff', '.bmp'):
        np.testing.assert_array_equal(read, PIXELS)
    assert file.name == (name if '.' in name else 'x.png')
