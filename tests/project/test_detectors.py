"""Every detector trains, is evaluated, and fits every backbone."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from configs.models import squeezed
from data.formats.class_masks import class_masks
from data.formats.object_masks import object_masks
from data.formats.voc import voc
from mmengine.config import Config, ConfigDict
from repository import ROOT

from ptnt_mm.api import create_project
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Severity, of_kind
from ptnt_mm.workbench.check.inspection import check
from ptnt_mm.workbench.cli.start import parser_of
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.zoo import detector_names
from ptnt_mm.workbench.project.backbones import find_backbone
from ptnt_mm.workbench.project.create import copy_fragments
from ptnt_mm.workbench.project.detectors import find_detector, task_of
from ptnt_mm.workbench.project.model_settings import model_lines
from ptnt_mm.workbench.project.recipe import choose_recipe

from .test_recipe import PROFILE

TABLE = Config.fromfile(ROOT / 'configs/_base_/project/detectors.py')
DETECTORS = [name for name, row in TABLE.detectors.items() if row.task != 'classification']
DATA = dict(detection=voc, instance=object_masks, semantic=class_masks)
HOSTS = dict(detection='mmdet', instance='mmdet', semantic='mmseg', classification='mmpretrain')


@pytest.mark.parametrize('name', DETECTORS)
def test_a_detector_trains_and_is_evaluated(tmp_path: Path, name: str):
    data = DATA[task_of(name)](tmp_path / 'data')
    file = create_project(data, tmp_path / 'project', detector=name, size=64, epochs=1)
    assert len(file.read_text().splitlines()) <= 40
    # The check takes a training step and evaluates an image.
    assert not of_kind(check(read_config(file)), Severity.ERROR)


def model_of(name: str, backbone: str, folder: Path, **profile) -> ConfigDict:
    """The model of a project, as its config resolves it."""
    task = task_of(name)
    network = find_backbone(backbone, None, HOSTS[task])
    profile = replace(
        PROFILE, task=task, detector=find_detector(name, task), backbone=network, **profile
    )
    recipe = choose_recipe(profile)
    copy_fragments(folder, profile)
    lines = [
        f'_base_ = {profile.detector.fragment!r}',
        f'classes = {profile.classes!r}',
        f'norm, crop = {recipe["norm"].value!r}, {recipe["crop"].value!r}',
        *model_lines(profile, recipe),
    ]
    (folder / 'config.py').write_text('\n'.join(lines))
    config = read_config(folder / 'config.py')
    return Config(dict(model=config.model, default_scope=HOSTS[task]))


def parameters_of(config: ConfigDict) -> int:
    with torch.device('meta'):
        return sum(weight.numel() for weight in build_model(config).parameters())


def assert_no_map_is_squeezed(config: ConfigDict) -> None:
    """With its padding, no map is resized by other factors for rows than for columns."""
    with torch.device('meta'):
        model = build_model(config)
    if 'Classifier' not in config.model.type:
        stated = config.model.data_preprocessor
        padded = stated.get('pad_size_divisor') or stated.test_cfg.size_divisor
        assert not squeezed(model, padded)


@pytest.mark.parametrize('backbone', ['ptnt_ti', 'resnet18', 'tnt_s'])
@pytest.mark.parametrize('name', list(TABLE.detectors))
def test_every_detector_is_built_with_every_kind_of_backbone(
    tmp_path: Path, name: str, backbone: str
):
    assert_no_map_is_squeezed(model_of(name, backbone, tmp_path))


@pytest.mark.parametrize('name', DETECTORS)
def test_a_large_data_set_has_wide_heads(tmp_path: Path, name: str):
    narrow = model_of(name, 'ptnt_ti', tmp_path / 'narrow')
    wide = model_of(name, 'ptnt_ti', tmp_path / 'wide', counts=dict(train=9000))
    assert parameters_of(wide) > 1.02 * parameters_of(narrow)


def test_number_of_detections_is_that_of_an_image_and_not_of_proposals(tmp_path: Path):
    model = model_of('cascade', 'ptnt_ti', tmp_path, most=300).model
    assert model.test_cfg.rcnn.max_per_img == 500
    assert model.test_cfg.rpn.max_per_img == 1000
    assert [head.num_classes for head in model.roi_head.bbox_head] == [2, 2, 2]


def test_ranges_of_solov2_follow_the_size(tmp_path: Path):
    ranges = model_of('solov2', 'ptnt_ti', tmp_path, asked_size=1333).model.mask_head.scale_ranges
    usual = find_detector('solov2', 'instance').model.mask_head.scale_ranges
    assert [tuple(pair) for pair in ranges] == [tuple(pair) for pair in usual]


def test_a_detector_determines_the_task(tmp_path: Path):
    data = object_masks(tmp_path / 'data')
    file = create_project(data, tmp_path / 'boxes', detector='atss', size=64, epochs=1)
    assert read_config(file).model.type == 'ATSS'
    with pytest.raises(UserError, match='atss.*detection.*instance.*mask_rcnn'):
        create_project(data, tmp_path / 'masks', task='instance', detector='atss')
    with pytest.raises(UserError, match="'gfll': did you mean 'gfl'"):
        create_project(data, tmp_path / 'masks', detector='gfll')


def test_the_help_lists_every_detector():
    text = ' '.join(parser_of('new').format_help().split())
    assert set(detector_names()) == set(TABLE.detectors) and ', '.join(detector_names()) in text
