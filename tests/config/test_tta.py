"""Test-time augmentation of configs that state none: views at their own size, and mirrored."""

from pathlib import Path

import numpy as np
import pytest
from mmcv.transforms import Compose
from mmengine.config import Config
from mmengine.registry import DefaultScope
from PIL import Image
from repository import ROOT

from ptnt_mm.config.hosts import import_host
from ptnt_mm.config.tta import check_tta_scales, with_tta
from ptnt_mm.config.view import ConfigView
from ptnt_mm.utils.errors import UserError

PROJECT = ROOT / 'configs/_base_/project'
HOSTS = dict(detection='mmdet', instance='mmdet', semantic='mmseg', classification='mmpretrain')
SIZE = (40, 30)  # of the image, width and height


def config_of(task: str, scale: tuple[int, int] = (80, 60)) -> Config:
    """The test data of a project."""
    config = Config.fromfile(PROJECT / f'data_{task}.py')
    config.default_scope = HOSTS[task]
    config.model = dict(test_cfg=dict(rcnn=dict(max_per_img=300)))
    pipeline = config.test_dataloader.dataset.pipeline
    if task == 'classification':
        pipeline[1].scale, pipeline[2].crop_size = 32, 24
    else:
        pipeline[1].scale = scale
    return config


@pytest.mark.parametrize('task', HOSTS)
def test_the_views_of_an_image(task: str, tmp_path: Path):
    import_host(HOSTS[task])
    file = tmp_path / 'a.png'
    image = np.random.default_rng(0).integers(256, size=(*SIZE[::-1], 3), dtype=np.uint8)
    Image.fromarray(image).save(file)
    steps = with_tta(ConfigView(config_of(task))).config.test_dataloader.dataset.pipeline
    entries = dict(img_path=str(file), img_id=0, instances=[], gt_label=0, seg_fields=[])
    entries |= dict(seg_map_path=str(file), reduce_zero_label=False)
    with DefaultScope.overwrite_default_scope(HOSTS[task]):
        views = Compose(steps)(entries)
    images, samples = views['inputs'], views['data_samples']
    sides = [(24, 24)] * 2 if task == 'classification' else [(60, 80), (45, 60), (75, 100)] * 2
    assert sorted(tuple(view.shape[1:]) for view in images) == sorted(sides)
    for view, sample in zip(images, samples, strict=True):
        other = next(
            other
            for other, its in zip(images, samples, strict=True)
            if other.shape == view.shape and bool(its.flip) != bool(sample.flip)
        )
        assert np.array_equal(view.numpy(), other.numpy()[..., ::-1])


def test_a_pipeline_that_only_packs_what_the_data_set_loaded(tmp_path: Path):
    import_host('mmpretrain')
    file = tmp_path / 'cifar.py'
    file.write_text("_base_ = 'mmpretrain::resnet/resnet18_8xb16_cifar10.py'")
    config = Config.fromfile(file)
    steps = with_tta(ConfigView(config)).config.test_dataloader.dataset.pipeline
    image = np.random.default_rng(0).integers(256, size=(32, 32, 3), dtype=np.uint8)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        flipped, own = Compose(steps)(dict(img=image, gt_label=0))['inputs']
    assert np.array_equal(own.numpy(), image.transpose(2, 0, 1))
    assert np.array_equal(flipped.numpy(), own.numpy()[..., ::-1])


def test_a_model_merges_as_many_boxes_as_the_detector_finds():
    model = with_tta(ConfigView(config_of('detection'))).config.tta_model
    assert model.tta_cfg.max_per_img == 300


def test_what_a_config_states_is_used():
    config = config_of('instance')
    own = Config.fromfile(ROOT / 'configs/_base_/tta/detection.py')
    config.merge_from_dict(own.to_dict())
    augmented = with_tta(ConfigView(config)).config
    assert augmented.tta_model == own.tta_model
    assert augmented.test_dataloader.dataset.pipeline == own.tta_pipeline
    assert config.test_dataloader.dataset.pipeline != own.tta_pipeline
    # Made for COCO's images of 1333 pixels.
    (found,) = check_tta_scales(ConfigView(config))
    assert '(1333, 800), (666, 400), (2000, 1200)' in found.what and '(80, 60)' in found.what


def test_scales_near_the_trained_one_are_not_reported():
    config = config_of('detection', scale=(1333, 800))
    config.merge_from_dict(Config.fromfile(ROOT / 'configs/_base_/tta/detection.py').to_dict())
    assert not list(check_tta_scales(ConfigView(config)))
    assert not list(check_tta_scales(with_tta(ConfigView(config_of('semantic')))))


def test_a_host_without_such_a_model_needs_one():
    config = config_of('detection')
    config.default_scope = 'mmrotate'
    with pytest.raises(UserError, match='tta_model and tta_pipeline'):
        with_tta(ConfigView(config))
