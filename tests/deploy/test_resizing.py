"""Sizes and pixels after the steps of a test pipeline, compared with the hosts."""

import sys

import numpy as np
import pytest
from mmengine.registry import TRANSFORMS
from mmpretrain.datasets import transforms  # noqa: F401  registers ResizeEdge

from ptnt_mm.deploy.pixels import prepared
from ptnt_mm.deploy.resizing import INTERPOLATIONS, Resizing
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.export.evaluation import stated_resizing

SHAPES = [(60, 80), (81, 43), (7, 300), (33, 33)]

RESIZE = dict(type='Resize', scale=(64, 48), keep_ratio=True)
SQUARE = dict(type='Resize', scale=40)
EDGE = dict(type='ResizeEdge', scale=41)
CROP = dict(type='CenterCrop', crop_size=32)
FLAT = dict(type='CenterCrop', crop_size=(36, 25))


def classifier(*steps: dict) -> ConfigView:
    pipeline = [dict(type='LoadImageFromFile'), *steps, dict(type='PackInputs')]
    dataset = dict(type='CustomDataset', pipeline=pipeline)
    return ConfigView(
        dict(default_scope='mmpretrain', model={}, test_dataloader=dict(dataset=dataset))
    )


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize(
    ('steps', 'common'),
    [
        ([], None),
        ([RESIZE], None),
        ([SQUARE], (40, 40)),
        ([SQUARE, FLAT], (25, 36)),
        ([RESIZE | dict(keep_ratio=False)], (48, 64)),
        ([EDGE], None),
        ([EDGE, CROP], (32, 32)),
        ([EDGE, FLAT], (25, 36)),
        ([EDGE | dict(scale=30), FLAT], None),  # some images are smaller than the crop
        ([CROP], None),
        ([EDGE | dict(backend='pillow', interpolation='bicubic'), CROP], (32, 32)),
    ],
)
def test_images_are_those_of_the_pipeline(shape: tuple, steps: list[dict], common: tuple | None):
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    resizing = stated_resizing(classifier(*steps))
    inputs, size = prepared(image, resizing, None)
    expected = dict(img=image, img_shape=shape)
    for step in steps:
        expected = TRANSFORMS.build(step | dict(_scope_='mmpretrain'))(expected)
    np.testing.assert_array_equal(inputs['images'][0], expected['img'])
    assert size == expected['img'].shape[:2] and inputs['sizes'].tolist() == [list(size)]
    assert resizing.common_size == common
    assert common is None or size == common


@pytest.mark.parametrize('interpolation', INTERPOLATIONS)
def test_interpolations_are_those_of_mmcv(interpolation: str):
    backend, name = interpolation.split()
    test_images_are_those_of_the_pipeline(
        (60, 80), [EDGE | dict(backend=backend, interpolation=name)], None
    )


def test_without_opencv_only_bilinear_resizing_is_possible(monkeypatch):
    monkeypatch.setitem(sys.modules, 'cv2', None)
    image = np.zeros((60, 80, 3), np.uint8)
    for interpolation in INTERPOLATIONS:
        resizing = Resizing(edge=41, interpolation=interpolation)
        if interpolation.startswith('pillow') or interpolation == 'cv2 bilinear':
            assert prepared(image, resizing, None)[1] == (41, 54)
        else:
            with pytest.raises(UserError, match='resizing needs OpenCV: pip install'):
                prepared(image, resizing, None)


@pytest.mark.parametrize(
    ('steps', 'named'),
    [
        ([EDGE | dict(edge='long')], 'ResizeEdge'),
        ([CROP, EDGE], 'ResizeEdge'),
        ([RESIZE, SQUARE], 'Resize:'),
        ([EDGE, RESIZE], 'Resize:'),
        ([dict(type='Resize', scale_factor=0.5)], 'Resize:'),
        ([EDGE, CROP, FLAT], 'CenterCrop'),
        ([CROP | dict(auto_pad=True)], 'CenterCrop'),
        ([dict(type='EfficientNetCenterCrop', crop_size=64)], 'EfficientNetCenterCrop'),
        ([EDGE | dict(interpolation='hamming')], "'cv2 hamming'"),
        ([EDGE | dict(backend='tifffile')], "'tifffile bilinear'"),
    ],
)
def test_other_steps_are_refused(steps: list[dict], named: str):
    with pytest.raises(UserError, match=f'the test pipeline (has|resizes with) {named}'):
        stated_resizing(classifier(*steps))
