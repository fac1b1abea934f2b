"""A training step and the evaluation of an image, tried on small images, disturb nothing."""

import os
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from mmdet.datasets import CocoDataset
from mmdet.models import RetinaNet
from mmdet.models.dense_heads import RetinaHead
from mmengine.config import Config
from mmengine.registry import DATASETS, MODELS
from mmengine.structures import BaseDataElement, InstanceData, PixelData
from torch import nn

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Finding, Severity
from ptnt_mm.workbench.check.inspection import Inspection, check_before_testing, read_data
from ptnt_mm.workbench.check.trial.setup import model_for_trial, shrunk
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.tta import with_tta
from ptnt_mm.workbench.config.view import ConfigView

from .spoilt import NOT_COMPLETED, Demo, MaskDemo, counted

MICRO_HEAD = dict(
    _delete_=True, type='PSPHead', in_channels=8, in_index=3, channels=8, num_classes=5,
    pool_scales=(1,), norm_cfg=dict(type='BN'),
    loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0),
)  # fmt: skip


def _micro(masks: MaskDemo, micro_arch: dict) -> MaskDemo:
    """Use a small model whose head normalises a map of a single pixel."""
    widths = list(micro_arch['outer_dims'])
    masks.options |= {
        'model.backbone.arch': dict(_delete_=True, **micro_arch),
        'model.neck.0.in_channels': widths,
        'model.neck.1.in_channels': widths,
        'model.neck.1.out_channels': 8,
        'model.decode_head': MICRO_HEAD,
    }
    return masks


def tried(
    config: Config, *splits: str, model: nn.Module | None = None, gpus: int = 1
) -> list[Finding]:
    """The findings of the steps alone; without splits, those of a training step."""
    view, splits = ConfigView(config), splits or ('train',)
    inspection = Inspection(view, splits, gpus)
    inspection.data, _ = read_data(view, splits)
    inspection.model = model or model_for_trial(view)
    inspection.check_steps()
    return inspection.findings


def test_an_image_shrinks_and_all_that_is_known_of_it():
    sample = dict(
        inputs=torch.zeros(3, 800, 1333, dtype=torch.uint8),
        data_samples=BaseDataElement(
            metainfo=dict(
                img_shape=(800, 1333), ori_shape=(480, 800), scale_factor=(1333 / 800, 800 / 480)
            ),
            gt_sem_seg=PixelData(sem_seg=torch.zeros(1, 800, 1333, dtype=torch.int64)),
        ),
    )
    small = shrunk(sample, 256, with_truth=True)
    # The remainders of 64 stay: models that refuse odd sizes refuse these.
    assert small['inputs'].shape == (3, 256 + 800 % 64, 256 + 1333 % 64)
    meta = small['data_samples']
    assert meta.img_shape == small['inputs'].shape[1:] and meta.ori_shape == (480, 800)
    width, height = meta.scale_factor
    assert meta.img_shape == (round(480 * height), round(800 * width))
    assert meta.gt_sem_seg.sem_seg.shape[1:] == meta.img_shape
    # Ground truth in an evaluation has the size of the original image.
    kept = shrunk(sample, 256)['data_samples']
    assert kept.gt_sem_seg.sem_seg.shape[1:] == (800, 1333)
    assert sample['data_samples'].img_shape == (800, 1333)


def test_an_unreadable_image_is_skipped_as_in_training(masks: MaskDemo, micro_arch: dict):
    config = _micro(masks, micro_arch).config()
    masks.image('train', 1).write_text('no picture')
    assert not counted(tried(config))
    config.custom_hooks = []
    assert '000001.jpg' in str(tried(config))


def test_batch_norm_gets_two_images_where_training_has_two(masks: MaskDemo, micro_arch: dict):
    config = _micro(masks, micro_arch).config()
    model = build_model(config)
    assert not counted(tried(config, model=model))
    assert model.data_preprocessor.size == (192, 192)
    config.train_dataloader.batch_size = 1
    assert not counted(tried(config, model=model, gpus=2))
    (found,) = tried(config, model=model)
    assert 'more than 1 value per channel' in found.what


@MODELS.register_module()
class UninitialisedHead(RetinaHead):
    """With a parameter of what was in memory, as the level embeddings of mmdet's DETRs have it."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.embedding = nn.Parameter(torch.full((4, 256), torch.nan))


@MODELS.register_module()
class SilentRetinaNet(RetinaNet):
    """Returns nothing where PyTorch's modules return themselves, as mmdet's distillation does."""

    def train(self, mode: bool = True) -> None:
        super().train(mode)


def test_a_model_whose_train_returns_nothing(demo: Demo):
    demo.options['model.type'] = 'SilentRetinaNet'
    assert not counted(tried(demo.config(), 'train', 'val'))


def test_parameters_without_values_get_some(demo: Demo):
    demo.options['model.bbox_head.type'] = 'UninitialisedHead'
    embedding = model_for_trial(ConfigView(demo.config())).bbox_head.embedding
    assert embedding.isfinite().all() and 0 < embedding.std() < 0.1


def test_a_trial_leaves_files_and_random_numbers_alone(
    demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
):
    temporary = tmp_path / 'temporary'
    temporary.mkdir()
    monkeypatch.setattr('tempfile.tempdir', str(temporary))
    demo.options['val_evaluator.outfile_prefix'] = str(tmp_path / 'out' / 'results')
    config = demo.config()
    model = model_for_trial(ConfigView(config))
    before = sorted(os.walk(tmp_path)), random.random(), np.random.rand(), torch.rand(1)
    random.seed(0), np.random.seed(0), torch.manual_seed(0)
    states = random.getstate(), torch.get_rng_state()
    trained, evaluated = tried(config, 'train', 'val', model=model)
    assert trained.severity is evaluated.severity is Severity.OK
    assert 'coco/bbox_mAP_50' in evaluated.what
    assert random.getstate() == states[0] and torch.equal(torch.get_rng_state(), states[1])
    assert sorted(os.walk(tmp_path)) == before[0]
    assert capfd.readouterr().out == ''


def test_a_model_that_finds_nothing_is_measured(demo: Demo, monkeypatch: pytest.MonkeyPatch):
    demo.options['val_evaluator.metric_items'] = ['mAP', 'mAP_90']
    config = demo.config()
    model = build_model(config)

    def nothing(batch: dict) -> list:
        (sample,) = batch['data_samples']
        sample.pred_instances = InstanceData(
            bboxes=torch.zeros(0, 4), scores=torch.zeros(0), labels=torch.zeros(0).long()
        )
        return [sample]

    monkeypatch.setattr(model, 'test_step', nothing)
    (found,) = tried(config, 'val', model=model)
    assert found.where == 'val_evaluator' and 'mAP_90' in found.what


@DATASETS.register_module()
class ManyImages:
    """Not one that the check reads; as CIFAR10, it has all of its images in the trial."""

    metainfo, loaded = dict(classes=('ball',)), []

    def __init__(self, **settings):
        self.loaded.clear()

    def __len__(self) -> int:
        return 5000

    def __getitem__(self, i: int) -> dict:
        self.loaded.append(i)
        return dict(inputs=torch.zeros(3, 32, 32 + i // 2000))


def test_a_data_set_of_many_images_is_not_loaded_as_a_whole(demo: Demo):
    demo.options['val_dataloader.batch_size'] = 4
    demo.options['val_dataloader.dataset'] = dict(_delete_=True, type='ManyImages')
    sizes = []

    class Model(nn.Module):
        def test_step(self, batch: dict) -> list:
            sizes.extend(image.shape[1:] for image in batch['inputs'])
            return []

    tried(demo.config(), 'val', model=Model())
    assert sizes == [(32, 32), (32, 33)] and ManyImages.loaded == [0, 1250, 2500, 3750]


def augmented(demo: Demo) -> ConfigView:
    return with_tta(ConfigView(demo.config()))


def test_evaluation_is_tried_before_testing(demo: Demo):
    assert check_before_testing(demo.view()) == []
    assert check_before_testing(demo.view(), augmented(demo)) == []
    demo.options['test_evaluator.metric_items'] = ['mAP_90']
    with pytest.raises(UserError, match='mAP_90'):
        check_before_testing(demo.view())
    del demo.options['test_evaluator.metric_items']
    steps = demo.config().tta_pipeline[1].transforms
    keys = tuple(key for key in steps[3][0].meta_keys if key != 'flip')
    demo.options['tta_pipeline.1.transforms.3.0.meta_keys'] = keys
    check_before_testing(demo.view())
    with pytest.raises(UserError, match=r"tta_pipeline\S+meta_keys: lacks 'flip'"):
        check_before_testing(demo.view(), augmented(demo))


@DATASETS.register_module()
class NoNames(CocoDataset):
    """With a class attribute that no data set of mmdet has like this."""

    METAINFO = None


def test_a_bug_in_the_check_does_not_stop_a_test(demo: Demo):
    demo.options['test_dataloader.dataset.type'] = 'NoNames'
    (line,) = check_before_testing(demo.view())
    assert NOT_COMPLETED in line and 'AttributeError' in line


def test_a_failure_in_the_users_code_is_reported_with_its_line(demo: Demo, monkeypatch, capfd):
    config = demo.config()
    model = build_model(config)

    def loss(*_, **__):
        raise IndexError('no such axis')

    monkeypatch.setattr(model.bbox_head, 'loss', loss)
    monkeypatch.setenv('PTNT_TRACEBACK', '1')
    (found,) = tried(config, model=model)
    assert f'no such axis ({__file__}, line {loss.__code__.co_firstlineno + 1})' in found.what
    assert 'in loss' in capfd.readouterr().err
