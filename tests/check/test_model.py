"""Heads and weights: checks that need a model."""

from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.model import BaseModule
from torch import nn

import ptnt_mm
from ptnt_mm.models import TNT
from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.check.inspection import check
from ptnt_mm.workbench.check.network import (
    check_built_heads,
    check_classes_of_heads,
    check_normalisation,
)
from ptnt_mm.workbench.check.weights import check_statistics, check_stored_names, check_weights_fit
from ptnt_mm.workbench.config.view import ConfigView

from .spoilt import TRAIN_SET, Demo, counted

NAMES = ('ball', 'cup')
ERROR, WARNING = Severity.ERROR, Severity.WARNING


def _model(**settings: object) -> Config:
    return Config(dict(model=dict(type='Any', **settings)))


def test_every_head_is_looked_at_and_other_classes_are_not():
    config = _model(
        backbone=dict(num_classes=1000),
        rpn_head=dict(num_classes=1),
        roi_head=dict(
            bbox_head=[dict(num_classes=2), dict(num_classes=80)],
            mask_head=dict(num_classes=3),
            semantic_head=dict(num_classes=183),
        ),
        panoptic_head=dict(num_things_classes=5, num_stuff_classes=0),
    )
    assert [finding.where for finding in check_classes_of_heads(ConfigView(config), NAMES)] == [
        'model.roi_head.bbox_head[1].num_classes',
        'model.roi_head.mask_head.num_classes',
        'model.panoptic_head.num_things_classes',
    ]


def test_numbers_of_classes_by_default_are_looked_at():
    head = nn.Module()
    head.num_classes = 80
    model = nn.ModuleDict({'roi_head': nn.ModuleDict({'bbox_head': nn.ModuleList([head])})})
    (finding,) = check_built_heads(ConfigView(_model()), model, NAMES)
    assert str(finding).startswith('model.roi_head.bbox_head[0].num_classes: is 80 by default')
    stated = _model(roi_head=dict(bbox_head=[dict(num_classes=80)]))
    assert not list(check_built_heads(ConfigView(stated), model, NAMES))


@pytest.mark.parametrize(
    ('head', 'things', 'found'),
    [
        (dict(), 2, []),
        (dict(), 80, ['model.panoptic_head.num_things_classes']),
        (dict(num_things_classes=80), 80, []),  # the comparison of settings finds it
        (dict(num_classes=2), 80, []),  # mmseg's Mask2Former leaves mmdet's defaults
    ],
)
def test_heads_of_things_and_stuff_are_compared_with_the_things(head: dict, things: int, found):
    built = nn.Module()
    built.num_things_classes, built.num_classes = things, things + 53
    model = nn.ModuleDict({'panoptic_head': built})
    findings = check_built_heads(ConfigView(_model(panoptic_head=head)), model, NAMES)
    assert [finding.where for finding in findings] == found


def test_a_head_of_borders_has_classes_of_its_own():
    stdc = type('STDCHead', (nn.Module,), dict(num_classes=3))()
    heads = [dict(type='FCNHead', num_classes=2), dict(type='mmseg.STDCHead', num_classes=3)]
    config = _model(auxiliary_head=heads)
    model = nn.ModuleDict({'auxiliary_head': nn.ModuleList([nn.Module(), stdc])})
    assert not [
        one for one in check_classes_of_heads(ConfigView(config), NAMES) if one.severity is ERROR
    ]
    assert not list(check_built_heads(ConfigView(config), model, NAMES))


class _HostsBackbone(BaseModule):
    """A backbone whose weights MMEngine copies by name."""

    def __init__(self, init_cfg: dict | None = None):
        super().__init__(init_cfg)
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))


class _WithOwnLoading(_HostsBackbone):
    def init_weights(self) -> None:
        """Read nothing."""


def _tnt(init_cfg: dict | None = None) -> TNT:
    arch = dict(depth=1, outer_dim=8, inner_dim=2, outer_heads=1, inner_heads=1, words=16)
    return TNT(arch, init_cfg=init_cfg)


def _prefixed(weights: dict) -> dict:
    return {f'student.{key}': weight for key, weight in weights.items()}


OK, NOTE = Severity.OK, Severity.NOTE


@pytest.mark.parametrize(
    ('backbone', 'content', 'prefix', 'severity', 'words'),
    [
        (_tnt, dict, None, OK, '42 weights'),
        (_tnt, _prefixed, 'student.', OK, '42 weights'),
        (_tnt, lambda weights: {'a': torch.ones(1)}, None, ERROR, 'cls_token'),
        (_tnt, lambda weights: {'a': print}, None, ERROR, 'refused'),
        (_HostsBackbone, lambda w: w | {'fc.bias': torch.ones(1)}, None, OK, '6 weights'),
        (_HostsBackbone, _prefixed, 'student.', OK, '6 weights'),
        (_HostsBackbone, _prefixed, None, ERROR, 'layers.0.weight'),
        (_WithOwnLoading, dict, None, ERROR, 'lacks all'),
    ],
)
def test_weights_of_a_backbone(tmp_path: Path, backbone, content, prefix, severity, words):
    file = tmp_path / 'weights.pth'
    torch.save(content(dict(backbone().state_dict())), file)
    init = dict(type='Pretrained', checkpoint=str(file), prefix=prefix)
    model = nn.ModuleDict({'backbone': backbone(init_cfg=init)})
    (finding,) = check_weights_fit(
        ConfigView(_model(backbone=dict(type='Any', init_cfg=init))), model
    )
    assert finding.severity is severity and words in finding.what


@pytest.mark.parametrize('backbone', [_tnt, _HostsBackbone])
def test_weights_of_a_whole_model(tmp_path: Path, backbone):
    """A run compares all of them when it starts."""
    config = _model(backbone=dict(type='Any'))
    config.load_from = str(tmp_path / 'epoch_1.pth')
    model = nn.ModuleDict({'backbone': backbone(), 'neck': nn.Linear(2, 2)})
    torch.save(dict(state_dict=model.state_dict(), meta={}), config.load_from)
    assert [finding.severity for finding in check_weights_fit(ConfigView(config), model)] == [OK]
    torch.save(dict(state_dict=nn.Linear(2, 2).state_dict(), meta={}), config.load_from)
    assert [finding.severity for finding in check_weights_fit(ConfigView(config), model)] == [ERROR]


@pytest.mark.parametrize(
    ('stored', 'severities'),
    [(NAMES, []), (NAMES[::-1], [ERROR]), (('ball', 'mug'), [WARNING]), (('mug',), [])],
)
def test_class_names_of_a_whole_model_are_compared(tmp_path: Path, stored, severities):
    file = tmp_path / 'epoch_1.pth'
    torch.save(dict(state_dict={}, meta=dict(dataset_meta=dict(classes=stored))), file)
    config = _model()
    config.load_from = str(file)
    found = list(check_stored_names(ConfigView(config), nn.Module(), NAMES))
    assert [finding.severity for finding in found] == severities
    assert all(finding.where == 'load_from' for finding in found)


def test_weights_at_an_address_are_not_downloaded():
    init = dict(type='Pretrained', checkpoint='https://a.invalid/w.pth')
    model = nn.ModuleDict({'backbone': _HostsBackbone(init)})
    settings = _model(backbone=dict(type='Any', init_cfg=init))
    (finding,) = check_weights_fit(ConfigView(settings), model)
    assert finding.severity is Severity.NOTE and 'it was not downloaded' in finding.what


@pytest.mark.parametrize('path', ['teacher', 'decode_head.layers.0'])
def test_weights_of_any_part(tmp_path: Path, path):
    """A student of a random teacher would learn nothing, in silence."""
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / 'weights.pth')
    model = part = nn.Module()
    for name in path.split('.'):
        part.add_module(name, nn.Module())
        part = part.get_submodule(name)
    init = dict(type='Pretrained', checkpoint=str(tmp_path / 'weights.pth'))
    part.add_module('backbone', _HostsBackbone(init))
    (finding,) = check_weights_fit(ConfigView(_model()), model)
    assert finding.severity is ERROR and 'does not fit the model _HostsBackbone' in finding.what


@pytest.mark.parametrize(
    ('scale', 'where'),
    [
        (dict(mean=[127.5] * 3, std=[127.5] * 3, bgr_to_rgb=True), []),
        (dict(mean=[127.5] * 3, std=[127.5] * 3), ['bgr_to_rgb']),
        (dict(mean=[123.675, 116.28, 103.53], std=[127.5] * 3, bgr_to_rgb=True), ['mean']),
        (
            dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], bgr_to_rgb=True),
            ['mean', 'std'],
        ),
    ],
)
def test_images_are_to_be_scaled_as_for_the_authors_weights(scale: dict, where: list[str]):
    init = dict(type='Pretrained', checkpoint='weights.pth')
    config = _model(backbone=dict(type='PyramidTNT', init_cfg=init), data_preprocessor=scale)
    found = counted(list(check_normalisation(ConfigView(config))))
    assert [one.where.rpartition('.')[2] for one in found] == where
    config.load_from = 'whole_model.pth'
    assert not counted(list(check_normalisation(ConfigView(config))))


def test_one_number_for_all_channels_is_an_error():
    (found,) = check_normalisation(ConfigView(_model(data_preprocessor=dict(mean=127.5, std=1))))
    assert found.severity is ERROR and 'mean=127.5 and std=1: expected a number for' in found.what


@pytest.mark.parametrize(
    ('key', 'value', 'words'),
    [
        (
            'model.bbox_head.stacked_conzz',
            3,
            "the model cannot be built: RetinaHead: unknown argument 'stacked_conzz': did you mean "
            "'stacked_convs'?",
        ),
        (
            TRAIN_SET + 'pipeline.2.scale',
            (0, 0),
            'train_dataloader.dataset.pipeline[2]: Resize fails',
        ),
        ('model.bbox_head.in_channels', 32, 'model.bbox_head: RetinaHead fails: '),
    ],
)
def test_what_cannot_be_built_or_fails_is_a_finding(demo: Demo, key: str, value, words: str):
    demo.options[key] = value
    assert words in '\n'.join(map(str, counted(demo.findings('heads', 'trial'))))


def test_an_error_elsewhere_does_not_hide_those_of_the_model():
    config = ptnt_mm.get_config('demo_retinanet_ptnt_ti')
    config.default_hooks.checkpoint.intervall = 2
    config.model.bbox_head.anchor_generator.strides = [4, 8, 16, 32, 64]
    found = [finding.where for finding in check(config, thorough=False)]
    assert 'default_hooks.checkpoint.intervall' in found
    assert 'model.bbox_head.prior_generator' in found


@pytest.mark.parametrize(
    ('settings', 'found'),
    [
        ({}, True),
        (dict(norm_eval=False), False),
        (dict(norm_cfg=dict(type='GN', num_groups=2)), False),
    ],
)
def test_batch_norm_that_never_learns_statistics(settings: dict, found: bool):
    """It is mmdet's default for ResNet, which is for pretrained weights."""
    from mmdet.models import ResNet

    model = nn.ModuleDict({'backbone': ResNet(18, base_channels=4, stem_channels=4, **settings)})
    severities = [finding.severity for finding in check_statistics(ConfigView(_model()), model)]
    assert severities == ([WARNING] if found else [])
    weights = dict(type='Pretrained', checkpoint='torchvision://resnet18')
    assert not list(check_statistics(ConfigView(_model(backbone=dict(init_cfg=weights))), model))
