"""Image files become the pixels that the hosts load, or an error that names the file."""

import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from inference.samples import photograph
from PIL import Image

from ptnt_mm.deploy.decoding import pillow_rgb, read_rgb, read_values
from ptnt_mm.utils.errors import UserError

PIXELS = photograph(12, 20)
GREY = PIXELS[..., 0]


def saved(image: np.ndarray | Image.Image, file: Path, **options) -> Path:
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    image.save(file, **options)
    return file


def test_sixteen_bits_are_scaled_and_not_cut_off(tmp_path: Path):
    grey = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    read = read_rgb(saved(grey, tmp_path / 'grey.png'))
    np.testing.assert_array_equal(read[..., 0], np.round(grey / 257))
    cv2.imwrite(str(tmp_path / 'colour.png'), PIXELS[..., ::-1].astype(np.uint16) * 257)
    np.testing.assert_array_equal(read_rgb(tmp_path / 'colour.png'), PIXELS)


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
    np.testing.assert_array_equal(read_rgb(saved(image, tmp_path / 'x.png')), rgb)


@pytest.mark.parametrize('suffix', ['.jpg', '.png', '.bmp', '.ppm', '.webp', '.tif'])
def test_pixels_are_those_that_the_hosts_load(suffix: str, tmp_path: Path):
    file = saved(photograph(90, 121), tmp_path / f'x{suffix}')
    np.testing.assert_array_equal(read_rgb(file), cv2.imread(str(file))[..., ::-1])


def without_adobe(file: Path) -> None:
    """Remove the marker after which readers invert the inks."""
    content = file.read_bytes()
    start = content.find(b'\xff\xee')
    length = int.from_bytes(content[start + 2 : start + 4], 'big')
    file.write_bytes(content[:start] + content[start + 2 + length :])


@pytest.mark.parametrize(
    ('image', 'name', 'options'),
    [
        (Image.fromarray(PIXELS).convert('CMYK'), 'inks.jpg', {}),
        (Image.fromarray(PIXELS).convert('CMYK'), 'inks_not_inverted.jpg', {}),
        (Image.fromarray(PIXELS).convert('CMYK'), 'inks.tif', {}),
        (Image.fromarray(PIXELS).convert('YCbCr'), 'luma.jpg', {}),
        (Image.fromarray(PIXELS).convert('P'), 'palette.png', dict(transparency=3)),
        (Image.fromarray(PIXELS).convert('P'), 'palette.tif', {}),
        (Image.fromarray(GREY > 99), 'one_bit.tif', dict(compression='group4')),
        (np.dstack([PIXELS, GREY]), 'alpha.tif', {}),
        (np.dstack([GREY, GREY[::-1]]), 'grey_alpha.tif', {}),
        (PIXELS, 'lzw.tif', dict(compression='tiff_lzw')),
        (PIXELS, 'deflate.tif', dict(compression='tiff_deflate')),
        (PIXELS, 'jpeg.tif', dict(compression='jpeg')),
    ],
    ids=lambda value: value if isinstance(value, str) else '',
)
def test_rare_kinds_have_the_pixels_that_the_hosts_load(
    image: np.ndarray | Image.Image, name: str, options: dict, tmp_path: Path
):
    file = saved(image, tmp_path / name, **options)
    if 'not_inverted' in name:
        without_adobe(file)
    np.testing.assert_array_equal(read_rgb(file), cv2.imread(str(file))[..., ::-1])


def test_alpha_of_sixteen_bits_is_dropped_as_the_hosts_do(tmp_path: Path):
    file = tmp_path / 'alpha.tif'
    cv2.imwrite(str(file), np.dstack([PIXELS[..., ::-1], GREY]).astype(np.uint16) * 257)
    np.testing.assert_array_equal(read_rgb(file), PIXELS)


def netpbm(values: np.ndarray, white: int, file: Path, as_text: bool = False) -> Path:
    """A PGM or PPM, which states the value of white."""
    kind, (height, width) = (5, 6)[values.ndim == 3] - 3 * as_text, values.shape[:2]
    stored = values.astype('>u2' if white > 255 else np.uint8).tobytes()
    content = ' '.join([*map(str, values.ravel()), '']).encode() if as_text else stored
    file.write_bytes(f'P{kind} {width} {height} {white} '.encode() + content)
    return file


@pytest.mark.parametrize('white', [1, 100, 255, 1023, 4095, 65535])
@pytest.mark.parametrize('pixels', [GREY, PIXELS], ids=['grey', 'colour'])
@pytest.mark.parametrize('as_text', [False, True], ids=['binary', 'text'])
def test_a_stated_white_is_what_the_hosts_make_of_it(
    white: int, pixels: np.ndarray, as_text: bool, tmp_path: Path
):
    values = pixels.astype(np.int64) * white // 255
    file = netpbm(values, white, tmp_path / 'x.ppm', as_text)
    theirs = cv2.imread(str(file))[..., ::-1].astype(int)
    np.testing.assert_allclose(read_rgb(file), theirs, atol=as_text or white > 255, rtol=0)


def test_a_decoded_picture_is_the_same_as_before(tmp_path: Path):
    with Image.open(netpbm(GREY // 3, 85, tmp_path / 'x.pgm')) as picture:
        first = pillow_rgb(picture)
        np.testing.assert_array_equal(pillow_rgb(picture), first)


def test_values_of_twelve_bits_are_those_that_opencv_reads(tmp_path: Path, monkeypatch):
    values = np.arange(4096).reshape(64, 64)
    content = netpbm(values, 4095, tmp_path / 'x.pgm').read_bytes()
    theirs = read_values(content)
    monkeypatch.setitem(sys.modules, 'cv2', None)
    np.testing.assert_array_equal(read_values(content), theirs)
    np.testing.assert_array_equal(theirs[..., 0], values)


def test_photographs_stand_upright(tmp_path: Path):
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by 90 degrees
    file = saved(PIXELS, tmp_path / 'x.jpg', exif=exif)
    assert read_rgb(file).shape == (20, 12, 3)
    np.testing.assert_array_equal(read_rgb(file), cv2.imread(str(file))[..., ::-1])


def test_damaged_files_are_refused(tmp_path: Path):
    for suffix in ('.jpg', '.png'):
        file = saved(photograph(90, 120), tmp_path / f'cut{suffix}')
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        with pytest.raises(UserError, match=rf'^{file} cannot be read: .*truncated'):
            read_rgb(file)
    for content, message in ((b'', 'is empty'), (b'notes', 'is not an image, or damaged')):
        (tmp_path / 'x.png').write_bytes(content)
        with pytest.raises(UserError, match=f'^{tmp_path}/x.png {message}$'):
            read_rgb(tmp_path / 'x.png')
    file = saved(GREY.astype(np.float32), tmp_path / 'x.tif')
    with pytest.raises(UserError, match=f'^{file} cannot .* pixels of float32: expected 8 or 16'):
        read_rgb(file)


def test_postscript_is_not_run(tmp_path: Path):
    """Pillow would report that Ghostscript is missing, or start it."""
    file = tmp_path / 'x.png'
    file.write_bytes(b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EOF\n')
    with pytest.raises(UserError, match='is not an image'):
        read_rgb(file)
