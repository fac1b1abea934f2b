"""A segmenter's classes, crops and step of training."""

import pytest
from mmengine.config import Config
from torch import nn

from ptnt_mm.check.class_names import faults_of_names
from ptnt_mm.check.heads import check_built_heads
from ptnt_mm.check.image_lists import load
from ptnt_mm.check.mask_lists import SegmentationData
from ptnt_mm.check.mask_settings import check_crops
from ptnt_mm.data.class_masks import label_of_each_value
from ptnt_mm.engine.build import build_model
from ptnt_mm.engine.hosts import import_host
from ptnt_mm.engine.training_memory import TrainingStep
from ptnt_mm.utils.errors import UserError

from .spoilt import MaskDemo


@pytest.fixture(autouse=True)
def _host():
    pytest.importorskip('mmseg')
    import_host('mmseg')


def test_a_subset_of_a_classs_own_names_keeps_its_values(masks: MaskDemo):
    masks.set_everywhere(
        type='PascalVOCDataset',
        ann_file='names.txt',
        metainfo=dict(_delete_=True, classes=('bicycle', 'background')),
    )
    (masks.folder / 'names.txt').write_text('000001\n000002')
    (data,), findings = load(SegmentationData, masks.config(), ('train',))
    assert not findings and not data.refusal and len(data.images) == 2
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
        (('bicycle', 'background'), 1, ['metainfo.palette has 1 colours, there are 2 classes']),
        # Other names have no colours in the class's own palette.
        (('bike', 'road'), None, ['metainfo.palette has 21 colours, there are 2 classes']),
        (('bike', 'road'), 21, ['metainfo.palette has 21 colours, there are 2 classes']),
    ],
)
def test_colours_of_a_subset_are_those_of_all_classes(
    masks: MaskDemo, names: tuple, colours: int | None, wrong: list
):
    metainfo = dict(_delete_=True, classes=names)
    if colours:
        metainfo['palette'] = [(i, i, i) for i in range(colours)]
    masks.set(type='PascalVOCDataset', ann_file='names.txt', metainfo=metainfo)
    (data,) = load(SegmentationData, masks.config(), ('train',))[0]
    found = [one.what.partition(':')[0] for one in faults_of_names(data)]
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
    config = masks.config()
    (finding,) = check_crops(load(SegmentationData, config, ('train',))[0], config)
    assert words in str(finding)


def _step(masks: MaskDemo, micro_arch: dict, images: int, **settings: object) -> TrainingStep:
    """A step with a small model whose head normalises a map of a single pixel."""
    widths = micro_arch['outer_dims']
    masks.options |= {
        'model.backbone.arch': dict(_delete_=True, **micro_arch),
        'model.neck.0.in_channels': list(widths),
        'model.neck.1.in_channels': list(widths),
        'model.neck.1.out_channels': 8,
        'model.decode_head': dict(
            _delete_=True,
            type='PSPHead',
            in_channels=8,
            in_index=3,
            channels=8,
            num_classes=5,
            norm_cfg=dict(type='BN'),
        ),
        **settings,
    }
    config = masks.config()
    return TrainingStep(config, build_model(config), images)


def test_a_step_is_tried_with_two_images(masks: MaskDemo, micro_arch: dict):
    step = _step(masks, micro_arch, images=2)
    assert step.area == 192 * 192
    loss, area = step.loss(side=64)
    assert area == 2 * 64 * 64 and loss.isfinite()
    # It is as it was.
    assert step.model.data_preprocessor.size == (192, 192)
    assert step.loss(side=1000)[1] == 2 * 192 * 192


def test_a_single_image_has_nothing_to_normalise(masks: MaskDemo, micro_arch: dict):
    step = _step(masks, micro_arch, images=1)
    with pytest.raises(UserError, match='more than 1 value per channel'):
        step.loss(side=64)


def test_a_step_is_tried_without_a_fixed_size(masks: MaskDemo, micro_arch: dict):
    settings = {'model.data_preprocessor.size': None, 'model.data_preprocessor.size_divisor': 96}
    assert _step(masks, micro_arch, 2, **settings).loss(side=90)[1] == 2 * 96 * 96


def test_a_segmenter_repeats_the_number_of_its_head():
    model = nn.ModuleDict({'decode_head': nn.Module()})
    model.num_classes = model['decode_head'].num_classes = 150
    config = Config(dict(model=dict(decode_head=dict(num_classes=150))))
    # What the config states is another check's.
    assert not list(check_built_heads(config, model, ('a', 'b')))
