"""Preparing images and pasting masks, compared with the hosts."""

import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from ptnt_mm.deploy.pixels import enlarge, paste, prepared, resize, to_rgb
from ptnt_mm.deploy.resizing import Resizing
from ptnt_mm.utils.errors import UserError

IMAGE = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)


@pytest.mark.parametrize('size', [(30, 41), (120, 161), (60, 80), (1, 1)])
def test_resizing_without_opencv_is_opencvs(monkeypatch, size: tuple[int, int]):
    expected = cv2.resize(IMAGE, size[::-1], interpolation=cv2.INTER_LINEAR)
    np.testing.assert_array_equal(resize(IMAGE, size), expected)
    monkeypatch.setitem(sys.modules, 'cv2', None)
    assert np.abs(resize(IMAGE, size).astype(int) - expected).max() <= 1


def test_a_file_of_fixed_size_gets_images_that_fit():
    inputs, size = prepared(IMAGE.swapaxes(0, 1), Resizing([256, 192]), [192, 256])
    assert size == (192, 144) and inputs['images'].shape == (1, 192, 256, 3)
    assert inputs['sizes'].tolist() == [[192, 144]] and not inputs['images'][:, :, 144:].any()


@pytest.mark.parametrize('box', [(10.2, 5.7, 40.1, 33.3), (-3, -4, 20, 70), (5, 5, 5, 9)])
def test_masks_are_pasted_as_mmdet_does(box: tuple[float, ...]):
    from mmdet.models.roi_heads.mask_heads.fcn_mask_head import _do_paste_mask

    mask = np.random.default_rng(1).random((28, 28), dtype=np.float32)
    found = paste(mask, np.float32(box), (60, 80), 0.5)
    if box[0] == box[2]:
        assert not found.any()
        return
    whole, _ = _do_paste_mask(
        torch.from_numpy(mask)[None, None], torch.tensor([box]), 60, 80, skip_empty=False
    )
    assert (found != (whole[0].numpy() >= 0.5)).mean() < 1e-3


@pytest.mark.parametrize('stride', [4, 8])
def test_whole_masks_are_enlarged_as_in_the_hosts(stride: int):
    """RTMDet's by torch; CondInst's by mmdet, half a pixel further."""
    from mmdet.models.utils import aligned_bilinear
    from torch.nn.functional import interpolate

    mask = torch.randn(1, 1, 7, 9)
    size = (7 * stride - 3, 9 * stride - 1)
    for whole, first in (
        (interpolate(mask, scale_factor=stride, mode='bilinear'), stride / 2),
        (aligned_bilinear(mask, stride), stride // 2 + 0.5),
    ):
        found = enlarge(mask[0, 0].numpy(), (stride, first), (1, 1), size)
        np.testing.assert_allclose(found, whole[0, 0, : size[0], : size[1]], atol=1e-5)


def test_whole_masks_follow_the_size_of_the_image():
    """A network's input of 12 x 16 pixels; the image's sides are two and three times as long."""
    mask = np.zeros((3, 5), np.float32)  # also of the padding
    mask[1, 2] = 1
    found = enlarge(mask, (4, 2), (2, 3), (24, 48)) > 0.5
    rows, columns = (np.flatnonzero(found.any(axis)) for axis in (1, 0))
    assert (rows[0], rows[-1]) == (8, 15) and (columns[0], columns[-1]) == (24, 35)


def test_images_of_every_kind(tmp_path: Path):
    Image.fromarray(IMAGE).save(tmp_path / 'x.png')
    for image in (IMAGE, Image.fromarray(IMAGE), tmp_path / 'x.png', str(tmp_path / 'x.png')):
        np.testing.assert_array_equal(to_rgb(image), IMAGE)
    assert to_rgb(Image.fromarray(IMAGE[..., 0])).shape == (60, 80, 3)


def test_files_of_16_bits_are_those_of_training(tmp_path: Path):
    Image.fromarray(np.full((2, 3), 30000, np.uint16)).save(tmp_path / 'grey.png')
    assert (to_rgb(tmp_path / 'grey.png') == 117).all()


def test_pillow_images_of_more_than_8_bits():
    grey = IMAGE[..., 0].astype(np.uint16)
    expected = np.dstack([IMAGE[..., 0]] * 3)
    np.testing.assert_array_equal(to_rgb(Image.fromarray(grey * 257)), expected)
    np.testing.assert_array_equal(to_rgb(Image.fromarray(grey * 16), (0, 4095)), expected)
    floats = Image.fromarray(IMAGE[..., 0] / np.float32(255))
    np.testing.assert_array_equal(to_rgb(floats, (0, 1)), expected)


def test_damaged_exif_is_ignored(tmp_path: Path):
    Image.fromarray(IMAGE).save(tmp_path / 'a.png', exif=b'garbage')
    np.testing.assert_array_equal(to_rgb(Image.open(tmp_path / 'a.png')), IMAGE)
    np.testing.assert_array_equal(to_rgb(tmp_path / 'a.png'), IMAGE)


@pytest.mark.parametrize('mode', ['RGB', 'CMYK', 'L'])
def test_an_opened_photograph_is_that_of_its_file(tmp_path: Path, mode: str):
    exif = Image.Exif()
    exif[0x0112] = 6  # it was taken with the camera turned
    Image.fromarray(IMAGE).convert(mode).save(tmp_path / 'a.jpg', exif=exif)
    found = to_rgb(Image.open(tmp_path / 'a.jpg'))
    assert found.shape == (80, 60, 3)
    np.testing.assert_array_equal(found, to_rgb(tmp_path / 'a.jpg'))


@pytest.mark.parametrize(
    ('image', 'message'),
    [
        (IMAGE / 255, r'got float64 \(60, 80, 3\)'),
        (IMAGE[..., 0], r'got uint8 \(60, 80\)'),
        (IMAGE[:0], r'got uint8 \(0, 80, 3\)'),
        (np.dstack([IMAGE, IMAGE[..., 0]]), r'got uint8 \(60, 80, 4\)'),
        (IMAGE.astype(np.uint16), r'got uint16 \(60, 80, 3\)'),
        (Image.fromarray(IMAGE[..., 0] / np.float32(255)), 'mode F: it has pixels of float32'),
        (torch.from_numpy(IMAGE), r'got Tensor of torch.uint8 \(60, 80, 3\)'),
        (None, 'got NoneType'),
        ('no.png', r'no\.png cannot be read: No such file'),
    ],
)
def test_what_is_no_image_is_named(image: object, message: str):
    with pytest.raises(UserError, match=message):
        to_rgb(image)
