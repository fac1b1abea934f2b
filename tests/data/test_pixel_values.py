"""The range that images of more than 8 bits are loaded in, and what loading drops."""

import io
from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile
from inference.samples import photograph
from PIL import Image

from ptnt_mm.deploy.decoding import read_values, scaled
from ptnt_mm.workbench.data.image_files import decoded
from ptnt_mm.workbench.data.pixel_values import (
    PixelValues,
    choose_range,
    few_levels,
    measure_values,
    oddity,
)

PIXELS = photograph(60, 90)
GREY = PIXELS[..., 0].astype(np.float64)  # 0 to 255


def as_tiff(pixels: np.ndarray, **options) -> bytes:
    file = io.BytesIO()
    tifffile.imwrite(file, pixels, **options)
    return file.getvalue()


def as_png(pixels: np.ndarray) -> bytes:
    return cv2.imencode('.png', pixels)[1].tobytes()


def as_pillow(image: Image.Image, form: str, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ('content', 'depth', 'left', 'expected'),
    [
        (as_png((GREY * 16).astype(np.uint16)), '16-bit', 16, (0, 4095)),
        (as_png(PIXELS.astype(np.uint16) * 4), '16-bit', 4, (0, 1023)),
        (as_tiff((GREY * 64).astype('>u2'), byteorder='>'), '16-bit', 64, (0, 16383)),
        (as_tiff((GREY * 16 + 30000).astype(np.uint16)), '16-bit', 17, (30000, 34100)),
        (as_tiff((GREY * 16 - 1000).astype(np.int16)), '16-bit signed', 0, (-1000, 3100)),
        (as_tiff((GREY / 255).astype(np.float32)), '32-bit float', 0, (0.0, 1.0)),
        (as_tiff((GREY / 2550).astype(np.float32)), '32-bit float', 0, (0.0, 0.1)),
        (as_tiff(GREY.astype(np.float32)), '32-bit float', 0, (0.0, 255.0)),
        (as_tiff((GREY * 1000).astype(np.int32)), '32-bit signed', 0, (0, 262143)),
        (
            b'P5\n90 60\n4095\n' + (GREY * 16).astype('>u2').tobytes(),
            '16-bit',
            16,
            (0, 4095),
        ),
        (as_png((GREY * 257).astype(np.uint16)), '16-bit', 90, None),
    ],
    ids=lambda value: '' if isinstance(value, bytes) else str(value),
)
def test_the_range_of_a_file(content: bytes, depth: str, left: int, expected: tuple | None):
    values = measure_values(content)
    assert (values.depth, values.levels_of_hosts) == (depth, left)
    assert choose_range([values]) == expected


def test_files_of_8_bits_have_no_range():
    for content in (as_png(PIXELS), as_tiff(PIXELS), as_pillow(Image.fromarray(PIXELS), 'JPEG')):
        assert measure_values(content) is None


def test_hot_pixels_and_a_rare_bright_image_do_not_widen_the_range():
    pixels = (GREY * 16).astype(np.uint16)
    pixels[3, 4] = 65535
    assert choose_range([measure_values(as_png(pixels))]) == (0, 4095)
    usual = PixelValues('uint16', 0, 4000, 0, 4000, 999)
    bright = PixelValues('uint16', 0, 65535, 0, 65535, 999)
    assert choose_range([usual] * 39 + [bright]) == (0, 4095)
    assert choose_range([usual] * 3 + [bright]) is None


TWO_GREYS = np.where(GREY > 99, 3900, 200) + np.arange(90) % 40  # 80 values of 12 bits


@pytest.mark.parametrize(
    ('values', 'stated', 'left'),
    [
        (GREY * 16, (0, 65535), 16),
        (GREY * 2, (0, 4095), None),  # a dark image of a set with brighter ones
        (GREY / 2, (0, 4095), 8),
        (TWO_GREYS, (0, 4095), None),  # no range would leave many more
        (TWO_GREYS, (0, 65535), 2),
    ],
)
def test_few_levels_are_those_that_a_better_range_would_keep(
    values: np.ndarray, stated: tuple, left: int | None
):
    content = as_png(values.astype(np.uint16))
    loaded = scaled(read_values(content), stated)
    found = few_levels(content, measure_values(content), loaded, stated)
    assert found.endswith(f' {left} of 256 grey levels are left') if left else not found


def test_not_a_number_is_not_counted():
    values = GREY.astype(np.float32)
    values[:10] = np.nan
    measured = measure_values(as_tiff(values))
    assert (measured.lowest, measured.highest) == (GREY[10:].min(), 255.0)


ALPHA = PIXELS[..., 1:2]


@pytest.mark.parametrize(
    ('content', 'kind'),
    [
        (as_tiff(np.stack([PIXELS[..., 0]] * 3), photometric='minisblack'), 'several pages'),
        (
            as_tiff(np.dstack([PIXELS, ALPHA]), extrasamples=['unspecified']),
            'more than three channels',
        ),
        (
            as_tiff(np.dstack([PIXELS, ALPHA * 0]), extrasamples=['unassalpha']),
            'transparency that makes',
        ),
        (as_png(np.dstack([PIXELS * 0, ALPHA])), 'nothing but transparency'),
        (as_tiff(np.dstack([PIXELS, ALPHA * 0 + 255]), extrasamples=['unassalpha']), None),
        (as_png(np.dstack([PIXELS, ALPHA])), None),
        (as_png(PIXELS[..., 0]), None),
        (as_pillow(Image.fromarray(PIXELS).convert('P'), 'PNG', transparency=3), None),
        (as_pillow(Image.fromarray(PIXELS).convert('CMYK'), 'JPEG'), None),
        (as_pillow(Image.fromarray(PIXELS[..., 0] > 99), 'PNG'), None),
    ],
    ids=lambda value: '' if isinstance(value, bytes) else str(value),
)
def test_what_loading_drops(content: bytes, kind: str | None):
    found = oddity(content)
    assert found is None if kind is None else kind in found[0]


def test_previews_are_no_pages(tmp_path: Path):
    file = tmp_path / 'pyramid.tif'
    with tifffile.TiffWriter(file) as writer:
        writer.write(PIXELS)
        writer.write(PIXELS[::2, ::2], subfiletype=1)
    assert oddity(file.read_bytes()) is None


def test_planes_of_16_bits_are_garbled_and_those_of_8_are_not():
    for kind, is_garbled in ((np.uint8, False), (np.uint16, True)):
        planes = np.moveaxis(PIXELS, 2, 0).astype(kind)
        content = as_tiff(planes, photometric='rgb', planarconfig='separate')
        assert bool(decoded(io.BytesIO(content))[0]) is is_garbled
