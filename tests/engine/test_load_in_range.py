"""Training, inference and exported files get the same pixels of images of more than 8 bits."""

import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile
from inference.samples import photograph
from mmcv.transforms import Compose
from PIL import Image

from ptnt_mm.deploy.decoding import read_rgb, scaled
from ptnt_mm.deploy.pixels import to_rgb
from ptnt_mm.utils.errors import UserError

PIXELS = photograph(60, 90)
GREY = PIXELS[..., 0]


def save_colours(file: Path) -> None:
    cv2.imwrite(str(file), PIXELS[..., ::-1].astype(np.uint16) * 16)


def save_turned(file: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(GREY.astype(np.uint16) * 16).save(file, exif=exif)


FILES = {
    'grey.png': lambda file: Image.fromarray(GREY.astype(np.uint16) * 16).save(file),
    'turned.png': save_turned,
    'colours.png': save_colours,
    'colours.tif': save_colours,
    'big.tif': lambda file: tifffile.imwrite(
        file, (GREY.astype(np.uint16) * 16).astype('>u2'), byteorder='>'
    ),
    'grey.pgm': lambda file: file.write_bytes(
        b'P5\n90 60\n4095\n' + (GREY.astype(np.uint16) * 16).astype('>u2').tobytes()
    ),
}


@pytest.mark.parametrize('name', FILES)
def test_the_same_pixels_everywhere(name: str, tmp_path: Path):
    file = tmp_path / name
    FILES[name](file)
    step = dict(type='LoadImageInRange', value_range=(0, 4095))
    loaded = Compose([step])(dict(img_path=str(file)))
    expected = PIXELS if 'colours' in name else np.dstack([GREY] * 3)
    expected = np.rot90(expected, -1) if 'turned' in name else expected
    np.testing.assert_array_equal(loaded['img'], expected[..., ::-1])
    assert loaded['img_shape'] == loaded['ori_shape'] == expected.shape[:2]
    np.testing.assert_array_equal(read_rgb(file, (0, 4095)), expected)
    np.testing.assert_array_equal(to_rgb(file, (0, 4095)), expected)


def test_without_opencv_grey_is_read_and_colours_are_refused(tmp_path: Path, monkeypatch):
    for name, save in FILES.items():
        save(tmp_path / name)
    monkeypatch.setitem(sys.modules, 'cv2', None)
    for name in ('grey.png', 'big.tif'):
        np.testing.assert_array_equal(to_rgb(tmp_path / name, (0, 4095))[..., 0], GREY)
    with pytest.raises(UserError, match=r'colours.png .*opencv-python'):
        to_rgb(tmp_path / 'colours.png', (0, 4095))


@pytest.mark.parametrize('suffix', ['.jpg', '.png', '.tif', '.bmp', '.webp'])
def test_8_bits_are_loaded_as_by_mmcv(suffix: str, tmp_path: Path):
    file = tmp_path / f'x{suffix}'
    Image.fromarray(PIXELS).save(file)
    results = dict(img_path=str(file))
    theirs = Compose([dict(type='LoadImageFromFile', to_float32=True)])(dict(results))
    step = dict(type='LoadImageInRange', value_range=(0, 4095), to_float32=True)
    ours = Compose([step])(dict(results))
    np.testing.assert_array_equal(ours['img'], theirs['img'])
    assert ours['img'].dtype == np.float32


@pytest.mark.parametrize(
    ('values', 'value_range', 'expected'),
    [
        (np.array([0, 255, 256, 65535], np.uint16), (0, 65535), [0, 0, 1, 255]),
        (np.array([0, 15, 16, 4095, 5000], np.uint16), (0, 4095), [0, 0, 1, 255, 255]),
        (np.array([-2000, -1000, 1048, 3096], np.int16), (-1000, 3095), [0, 0, 128, 255]),
        (np.array([-1, 0, 0.5, 1, 2, np.nan], np.float32), (0, 1), [0, 0, 128, 255, 255, 0]),
        (np.arange(256, dtype=np.float32), (0, 255), list(range(256))),
        (np.arange(256, dtype=np.float64) / 255, (0, 1), list(range(256))),
        (np.array([2**31 - 1], np.int32), (0, 2**31 - 1), [255]),
    ],
)
def test_scaling(values: np.ndarray, value_range: tuple, expected: list[int]):
    found = scaled(values, value_range)
    assert found.dtype == np.uint8 and found.tolist() == expected


@pytest.mark.parametrize(
    'value_range', [(5, 5), (9, 1), (0, float('inf')), (0, float('nan')), (1,), 4095, ('0', '9')]
)
def test_bad_ranges_are_refused(value_range: object):
    with pytest.raises(UserError, match='two finite numbers') as raised:
        Compose([dict(type='LoadImageInRange', value_range=value_range)])
    assert repr(value_range) in str(raised.value)
