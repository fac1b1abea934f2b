"""The configs of segmenters: settings, a training step and a test step."""

from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample
from torch import nn

import ptnt_mm
from ptnt_mm import complexity
from ptnt_mm.workbench.config import zoo
from ptnt_mm.workbench.config.build import build_by_name

from .models import HOSTS, SIZES, build, narrow

GRID = [
    *(f'semantic_fpn_ptnt_{size}_40k_ade20k' for size in SIZES),
    *(f'upernet_ptnt_{size}_160k_ade20k' for size in SIZES),
]
OTHERS = ['upernet_ptnt_s_80k_cityscapes', 'semantic_fpn_tnt_s_40k_ade20k', 'custom_seg']
MASK2FORMER = 'mask2former_ptnt_s_160k_ade20k'
DEMOS = ['demo_semantic_fpn_ptnt_ti']
PUBLISHED = GRID + OTHERS + DEMOS + [MASK2FORMER]
NAMES = [name for name in HOSTS if HOSTS[name] == 'mmseg']
SMALLEST = ['semantic_fpn_ptnt_ti_40k_ade20k', 'upernet_ptnt_ti_160k_ade20k']


def _predict(model: nn.Module, height: int, width: int) -> torch.Tensor:
    """The classes of a random image's pixels, (height, width)."""
    image = torch.randint(256, (3, height, width), dtype=torch.uint8)
    sample = SegDataSample(metainfo=dict(ori_shape=(height, width), img_shape=(height, width)))
    model.eval()
    with torch.no_grad():
        (sample,) = model.test_step(dict(inputs=[image], data_samples=[sample]))
    return sample.pred_sem_seg.data[0]


@pytest.mark.parametrize('config', GRID, indirect=True, scope='module')
def test_names_say_what_is_inside(config: Config):
    name = Path(config.filename).stem
    head, _, rest = name.partition('_ptnt_')
    assert config.model.decode_head.type == dict(semantic_fpn='FPNHead', upernet='UPerHead')[head]
    assert config.model.backbone.arch == SIZES[rest.partition('_')[0]]
    assert config.train_dataloader.dataset.type == 'ADE20KDataset'


@pytest.mark.parametrize('config', GRID + OTHERS, indirect=True, scope='module')
def test_the_recipes_are_those_of_other_backbones(config: Config):
    name = Path(config.filename).stem
    optimizer, schedule = config.optim_wrapper.optimizer, config.param_scheduler[-1]
    batch = config.train_dataloader.batch_size
    found = (optimizer.lr, optimizer.weight_decay, schedule.power, config.train_cfg.max_iters)
    if config.model.decode_head.type == 'FPNHead':
        assert found == (2e-4, 0.05, 0.9, 40_000)
        assert config.model.backbone.drop_path_rate == 0.1
        assert (batch, config.auto_scale_lr.base_batch_size) == (4, 32)
    else:
        cityscapes = 'cityscapes' in name
        assert found == (6e-5, 0.01, 1.0, 80_000 if cityscapes else 160_000)
        assert config.model.backbone.drop_path_rate == 0.2
        assert config.param_scheduler[0].end == schedule.begin == 1_500
        assert (batch, config.auto_scale_lr.base_batch_size) == (2, 8 if cityscapes else 16)
    assert optimizer.type == 'AdamW'
    assert schedule.end == config.train_cfg.max_iters
    assert config.train_cfg.max_iters % config.train_cfg.val_interval == 0
    assert not config.default_hooks.checkpoint.by_epoch


def test_the_recipe_of_mask2former_is_mmsegs_for_swin(tmp_path: Path):
    file = tmp_path / 'theirs.py'
    file.write_text("_base_ = 'mmseg::mask2former/mask2former_swin-t_8xb2-160k_ade20k-512x512.py'")
    theirs, ours = zoo.config_from_file(file), ptnt_mm.get_config(MASK2FORMER)
    for part in ('train_dataloader', 'val_dataloader', 'param_scheduler', 'auto_scale_lr'):
        assert ours[part] == theirs[part], part
    for part in ('optimizer', 'clip_grad'):
        assert ours.optim_wrapper[part] == theirs.optim_wrapper[part]
    assert ours.model.backbone.drop_path_rate == theirs.model.backbone.drop_path_rate
    assert ours.train_cfg.max_iters == theirs.train_cfg.max_iters


def test_crops_classes_and_windows_agree(config: Config):
    model = config.model
    (crop,) = (t for t in config.train_dataloader.dataset.pipeline if t.type == 'RandomCrop')
    assert tuple(crop.crop_size) == tuple(model.data_preprocessor.size)
    assert tuple(crop.crop_size) == tuple(model.test_cfg.crop_size)
    assert all(s < c for s, c in zip(model.test_cfg.stride, model.test_cfg.crop_size, strict=True))
    assert model.test_cfg.mode == 'whole'
    heads = [model.decode_head, *([model.auxiliary_head] if 'auxiliary_head' in model else [])]
    classes = {'ade20k': 150, 'cityscapes': 19}.get(Path(config.filename).stem.split('_')[-1], 5)
    assert all(head.num_classes == classes for head in heads)
    assert config.default_scope == 'mmseg'
    assert config.tta_model.type == 'SegTTAModel' and config.tta_pipeline
    assert config.val_evaluator.iou_metrics == ['mIoU']


def test_a_step_of_training_reaches_every_parameter(config: Config, model: nn.Module):
    classes = config.model.decode_head.num_classes
    labels = torch.randint(classes, (2, 1, 97, 131))
    samples = [
        SegDataSample(gt_sem_seg=PixelData(data=label), metainfo=dict(img_shape=(97, 131)))
        for label in labels
    ]
    model.train()
    total, _ = model.parse_losses(model(torch.randn(2, 3, 97, 131), samples, mode='loss'))
    total.backward()
    assert torch.isfinite(total)
    assert [name for name, p in model.named_parameters() if p.grad is None] == []
    model.zero_grad()


def test_predictions_at_an_odd_size(config: Config, model: nn.Module):
    classes = _predict(model, 75, 203)
    assert classes.shape == (75, 203)
    assert classes.min() >= 0 and classes.max() < config.model.decode_head.num_classes


@pytest.mark.parametrize('size', [(171, 256), (128, 512)])
@pytest.mark.parametrize('name', SMALLEST)
def test_whole_images_of_other_sizes_than_the_crops(name: str, size, micro_arch: dict):
    model = build(narrow(ptnt_mm.get_config(name), micro_arch))
    assert _predict(model, *size).shape == size


@pytest.mark.parametrize('name', SMALLEST)
def test_windows_slide_over_images_larger_and_smaller_than_them(name: str, micro_arch: dict):
    config = narrow(ptnt_mm.get_config(name), micro_arch)
    config.model.test_cfg.update(mode='slide', crop_size=(64, 128), stride=(43, 64))
    model = build(config)
    sizes = []
    model.backbone.register_forward_pre_hook(lambda _, args: sizes.append(args[0].shape[-2:]))
    assert _predict(model, 101, 130).shape == (101, 130)
    assert sizes == [(64, 128)] * 6  # of 128 x 192 pixels
    sizes.clear()
    assert _predict(model, 50, 61).shape == (50, 61)
    assert sizes == [(64, 64)]


def test_one_window_is_the_whole_image(micro_arch: dict):
    config = narrow(ptnt_mm.get_config(SMALLEST[1]), micro_arch)
    config.model.test_cfg.update(crop_size=(64, 128))
    maps = []
    for mode in ('whole', 'slide'):
        config.model.test_cfg.mode = mode
        torch.manual_seed(0)
        model = build(config)
        maps.append(_predict(model, 64, 128))
    assert torch.equal(*maps)


@pytest.mark.parametrize('name', [*SMALLEST, MASK2FORMER])
def test_the_real_widths_run_and_are_counted(name: str):
    model = build_by_name(name)
    counted = complexity.measure_complexity(model, (128, 128)).total
    assert counted.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert counted.multiply_adds > 0
