"""A segmenter's classes, crops and training step."""

import pytest
from mmengine.config import Config
from torch import nn

from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.check.inspection import read_data
from ptnt_mm.workbench.check.network import check_built_heads, check_padding
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.class_masks import label_of_each_value

from .spoilt import MaskDemo, counted


@pytest.fixture(autouse=True)
def _host():
    import_host('mmseg')


def test_a_subset_of_a_classs_own_names_keeps_its_values(masks: MaskDemo):
    masks.set_everywhere(
        type='PascalVOCDataset',
        ann_file='names.txt',
        metainfo=dict(_delete_=True, classes=('bicycle', 'background')),
    )
    (masks.folder / 'names.txt').write_text('000001\n000002')
    (data,), findings = read_data(masks.view(), ('train',))
    assert not counted([*findings]) and not data.why_not_built and len(data.images) == 2
    labels = label_of_each_value(data.built.reduce_zero_label, data.built.label_map)
    # Of the 21 classes, background is the first, aeroplane the second, bicycle the third.
    assert labels[[0, 1, 2, 20, 21]].tolist() == [1, 255, 0, 255, 21]


@pytest.mark.parametrize(
    ('names', 'colours', 'wrong'),
    [
        # mmseg picks the colours of a subset from the palette of all 21 classes.
        (('bicycle', 'background'), None, []),
        (('bicycle', 'background'), 21, []),
        (('bicycle', 'background'), 2, []),
        (('bicycle', 'background'), 1, ['metainfo.palette has 1 colours, but there are 2 classes']),
        # Other names have no colours in the class's own palette.
        (('bike', 'road'), None, ['metainfo.palette has 21 colours, but there are 2 classes']),
        (('bike', 'road'), 21, ['metainfo.palette has 21 colours, but there are 2 classes']),
    ],
)
def test_colours_of_a_subset_are_those_of_all_classes(
    masks: MaskDemo, names: tuple, colours: int | None, wrong: list
):
    metainfo = dict(_delete_=True, classes=names)
    if colours:
        metainfo['palette'] = [(i, i, i) for i in range(colours)]
    masks.set(type='PascalVOCDataset', ann_file='names.txt', metainfo=metainfo)
    found = [
        finding.what.partition(':')[0] for finding in masks.findings() if finding.where == 'train'
    ]
    assert [what for what in found if 'palette' in what] == wrong


@pytest.mark.parametrize(
    ('steps', 'words'),
    [
        # A scale is (width, height), a size (height, width).
        ([dict(type='Resize', scale=(64, 32))], 'crops are 32x64'),
        ([dict(type='Resize', scale=(64, 32), keep_ratio=True)], 'is not known'),
        ([dict(type='RandomCrop', crop_size=(32, 64))], 'crops are 32x64'),
        ([dict(type='RandomCrop', crop_size=8), dict(type='RandomResize')], 'is not known'),
        ([dict(type='RandomCrop', crop_size=(32,))], 'is not known'),
        ([dict(type='RandomCrop', crop_size=(32.0, 64.0))], 'is not known'),
        ([dict(type='OwnCrop')], 'is not known'),
    ],
)
def test_the_size_of_crops_is_that_of_the_last_step(masks: MaskDemo, steps: list, words: str):
    masks.set(pipeline=[dict(type='LoadAnnotations'), *steps])
    masks.options['model.data_preprocessor.size'] = (32, 64)
    (finding,) = (finding for finding in masks.findings() if 'crops ' in finding.what)
    assert words in str(finding)


def test_a_segmenter_repeats_the_number_of_its_head():
    model = nn.ModuleDict({'decode_head': nn.Module()})
    model.num_classes = model['decode_head'].num_classes = 150
    config = Config(dict(model=dict(decode_head=dict(num_classes=150))))
    # Another check covers the names in the config.
    assert not list(check_built_heads(ConfigView(config), model, ('a', 'b')))


PADDING = 'model.data_preprocessor.test_cfg'


@pytest.mark.parametrize(
    ('settings', 'words'),
    [
        ({}, ()),
        ({PADDING: None}, (PADDING, 'to no multiple', 'size_divisor=64')),
        ({PADDING + '.size_divisor': 32}, (PADDING, 'multiples of 32', 'stride 64')),
        ({PADDING: dict(size=(8, 8))}, (PADDING, 'to no multiple', 'size=None')),
        ({'model.test_cfg.mode': 'slide'}, ()),
        (
            {'model.test_cfg': dict(mode='slide', crop_size=(192, 96))},
            ('model.test_cfg.crop_size', '(192, 96)', 'multiples of 64'),
        ),
    ],
)
def test_maps_that_would_cover_more_than_the_image(
    masks: MaskDemo, settings: dict, words: tuple[str, ...]
):
    masks.options |= settings
    found = list(check_padding(masks.view(), build_model(masks.config())))
    assert len(found) == bool(words)
    assert all(finding.severity is Severity.NOTE for finding in found)
    assert all(word in f'{finding} {finding.advice}' for finding in found for word in words)
