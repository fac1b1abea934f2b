"""Test-time augmentation of configs that state none: views like those that training used."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from mmcv.transforms import Compose
from mmengine.config import Config
from mmengine.registry import DefaultScope
from PIL import Image
from repository import ROOT

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.tta import check_tta_scales, views_of, with_tta
from ptnt_mm.workbench.config.view import ConfigView

PROJECT = ROOT / 'configs/_base_/project'
HOSTS = dict(detection='mmdet', instance='mmdet', semantic='mmseg', classification='mmpretrain')
SIZE = (40, 30)  # of the image, width and height
FLIP = dict(type='RandomFlip', prob=0.5)


def config_of(task: str, scale: tuple[int, int] = (80, 60), trained: Sequence[dict] = ()) -> Config:
    """The data of a project whose training augments images by the given transforms."""
    config = Config.fromfile(PROJECT / f'data_{task}.py')
    config.default_scope = HOSTS[task]
    config.train_dataloader.dataset.pipeline[1:1] = trained
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
    config = config_of(task, trained=[resized(ratio_range=(0.75, 1.33)), FLIP])
    steps = with_tta(ConfigView(config)).config.test_dataloader.dataset.pipeline
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


def resized(**settings: object) -> dict:
    return dict(type='RandomResize', scale=(80, 60), keep_ratio=True) | settings


ALL = {(80, 60), (60, 45), (100, 75)}
TRAINED = dict(  # the transforms of training, the sizes of the views, and whether they are mirrored
    one_size=([dict(type='Resize', scale=(80, 60)), FLIP], {(80, 60)}, True),
    one_size_but_smaller=([dict(type='Resize', scale=(64, 48)), FLIP], {(80, 60), (60, 45)}, True),
    range_of_sizes=([resized(ratio_range=(0.8, 1.2)), FLIP], ALL, True),
    narrow_range=([resized(ratio_range=(0.9, 1.1)), FLIP], {(80, 60)}, True),
    two_sizes=([resized(scale=[(80, 48), (80, 60)]), FLIP], {(80, 60), (60, 45)}, True),
    choices=(
        [
            dict(
                type='RandomChoice',
                transforms=[
                    [dict(type='RandomChoiceResize', scales=[(40, 30), (100, 75)])],
                    [FLIP],
                ],
            )
        ],
        ALL,
        True,
    ),
    mosaic=([dict(type='CachedMosaic', img_scale=(80, 60)), FLIP], ALL, True),
    integers=([dict(type='RandomChoiceResize', scales=[60, 80]), FLIP], {(80, 60), (60, 45)}, True),
    squares=([dict(type='Resize', scale=80), FLIP], {(80, 60)}, True),
    size_of_the_image=([dict(type='RandomCrop', crop_size=(32, 32)), FLIP], {(80, 60)}, True),
    of_torchvision=([dict(type='torchvision/RandomHorizontalFlip', p=0.5)], {(80, 60)}, True),
    no_direction=([FLIP | dict(direction=None)], {(80, 60)}, True),
    no_mirroring=([resized(ratio_range=(0.5, 2.0))], ALL, False),
    never_mirrored=([resized(ratio_range=(0.5, 2.0)), FLIP | dict(prob=0.0)], ALL, False),
    upside_down=([resized(ratio_range=(0.5, 2.0)), FLIP | dict(direction='vertical')], ALL, False),
    two_directions=(
        [dict(type='Resize', scale=(80, 60)), FLIP | dict(direction=['horizontal', 'vertical'])],
        {(80, 60)},
        True,
    ),
)


@pytest.mark.parametrize('name', TRAINED)
def test_views_are_like_the_images_of_training(name: str):
    trained, sizes, mirrored = TRAINED[name]
    config = with_tta(ConfigView(config_of('detection', trained=trained))).config
    pipeline = config.test_dataloader.dataset.pipeline
    resizes, flips, *_ = pipeline[-1]['transforms']
    assert {step['scale'] for step in resizes} == sizes
    assert [step['prob'] for step in flips] == ([1.0, 0.0] if mirrored else [0.0])
    assert views_of(pipeline) == len(sizes) * (1 + mirrored)


def test_without_training_all_views_are_made():
    config = config_of('detection')
    config.pop('train_dataloader')
    assert views_of(with_tta(ConfigView(config)).test.pipeline) == 6


def test_nothing_to_average():
    config = config_of('detection', trained=[dict(type='Resize', scale=(80, 60))])
    with pytest.raises(UserError, match='used one size and did not mirror.*add tta_pipeline to'):
        with_tta(ConfigView(config))


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
    model = with_tta(ConfigView(config_of('detection', trained=[FLIP]))).config.tta_model
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
    assert not list(check_tta_scales(with_tta(ConfigView(config_of('semantic', trained=[FLIP])))))


def test_a_host_without_such_a_model_needs_one():
    config = config_of('detection')
    config.default_scope = 'mmrotate'
    with pytest.raises(UserError, match='tta_model and tta_pipeline'):
        with_tta(ConfigView(config))


def test_panoptic_maps_are_not_averaged():
    config = config_of('instance', trained=[FLIP])
    config.model.test_cfg = dict(panoptic_on=True)
    with pytest.raises(UserError, match='mmdet merges boxes and masks, but no panoptic maps'):
        with_tta(ConfigView(config))
