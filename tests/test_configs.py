"""Every config of the package: built, its channels compared, run forward and back once."""

from argparse import Namespace
from pathlib import Path

import pytest
import torch

import ptnt_mm
from ptnt_mm import zoo
from ptnt_mm.checkpoint import CheckpointError
from ptnt_mm.engine.start import use_pretrained
from ptnt_mm.models import PyramidTNTClassifier

mmdet = pytest.importorskip('mmdet')

from mmdet.structures import DetDataSample  # noqa: E402
from mmdet.testing import demo_mm_inputs  # noqa: E402
from mmengine.config import Config  # noqa: E402
from mmengine.optim import build_optim_wrapper  # noqa: E402
from mmengine.registry import MODELS, init_default_scope  # noqa: E402
from torch import nn  # noqa: E402

NAMES = zoo.config_names()


def _build(config: Config) -> nn.Module:
    init_default_scope(config.default_scope)
    return MODELS.build(config.model)


@pytest.fixture(scope='module', params=NAMES)
def config(request: pytest.FixtureRequest) -> Config:
    return ptnt_mm.get_config(request.param)


@pytest.fixture(scope='module')
def model(config: Config) -> nn.Module:
    torch.manual_seed(0)
    return _build(config)


def test_the_necks_channels_are_the_backbones(model: nn.Module):
    upsampler, pyramid = model.neck
    assert upsampler.in_channels == model.backbone.out_channels
    assert tuple(pyramid.in_channels) == upsampler.out_channels


def test_the_anchors_strides_are_the_maps(model: nn.Module):
    assert [stride // 2 for stride in model.backbone.out_strides] == [
        stride[0] for stride in model.bbox_head.prior_generator.strides[:3]
    ]


def test_images_are_scaled_as_for_the_published_weights(model: nn.Module):
    scale = model.data_preprocessor
    assert scale.mean.flatten().tolist() == scale.std.flatten().tolist() == [127.5] * 3
    assert scale._channel_conversion and scale.pad_size_divisor % 32 == 0


def test_weight_decay_spares_what_the_authors_spared(config: Config, model: nn.Module):
    decay = config.optim_wrapper.optimizer.weight_decay
    wrapper = build_optim_wrapper(model, config.optim_wrapper)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = wrapper.optimizer.param_groups
    decays = {names[id(p)]: g['weight_decay'] for g in groups for p in g['params']}
    assert decays.keys() == {name for name, p in model.named_parameters() if p.requires_grad}
    for name, parameter in model.named_parameters():
        spared = parameter.dim() == 1 or name in ('backbone.outer_pos', 'backbone.inner_pos')
        assert decays[name] == (0.0 if spared else decay), name
    assert decays['backbone.stages.0.relative_pos'] == decay


def test_a_step_of_training_reaches_every_parameter(model: nn.Module):
    data = demo_mm_inputs(1, [[3, 97, 131]], num_classes=4)
    model.train()
    losses = model(**model.data_preprocessor(data, training=True), mode='loss')
    total, logged = model.parse_losses(losses)
    total.backward()
    assert torch.isfinite(total) and {'loss_cls', 'loss_bbox'} <= set(logged)
    without = [name for name, p in model.named_parameters() if p.grad is None]
    assert without == []
    model.zero_grad()


def test_predictions_at_an_odd_size(model: nn.Module):
    data = demo_mm_inputs(1, [[3, 75, 203]], num_classes=4)
    model.eval()
    with torch.no_grad():
        (sample,) = model.test_step(data)
    assert isinstance(sample, DetDataSample)
    boxes = sample.pred_instances.bboxes
    assert boxes.shape[1] == 4 and torch.isfinite(boxes).all()


def test_the_batch_that_the_learning_rate_is_for_is_stated(config: Config):
    assert config.auto_scale_lr.base_batch_size in (8, 16)
    assert not config.auto_scale_lr.enable


def test_the_published_recipe():
    config = ptnt_mm.get_config('retinanet_ptnt_s_1x')
    optimizer = config.optim_wrapper.optimizer
    assert (optimizer.type, optimizer.lr, optimizer.weight_decay) == ('AdamW', 1e-4, 0.05)
    assert config.train_cfg.max_epochs == 12
    warmup, steps = config.param_scheduler
    assert (warmup.end, steps.milestones, steps.gamma) == (500, [8, 11], 0.1)
    assert config.auto_scale_lr.base_batch_size == 16
    assert config.train_dataloader.batch_size == 2
    resize = next(t for t in config.train_dataloader.dataset.pipeline if t.type == 'Resize')
    assert resize.scale == (1333, 800)
    assert config.model.backbone.drop_path_rate == 0.1


def test_the_authors_weights_reach_the_detector_whole_or_not_at_all(tmp_path: Path):
    weights = PyramidTNTClassifier('small').state_dict()
    training = dict(epoch=299, arch='ptnt_s', optimizer={}, args=Namespace(lr=1e-3), metric=82.0)
    file = tmp_path / 'authors.pth.tar'
    config = ptnt_mm.get_config('retinanet_ptnt_s_1x')
    use_pretrained(config, str(file))

    torch.save(dict(training, state_dict=weights), file)
    detector = _build(config)
    detector.init_weights()
    trunk = detector.backbone.state_dict()
    assert all(torch.equal(trunk[key], weights[key]) for key in trunk)
    assert not detector.backbone.patch_embed.common_conv[1].weight.requires_grad

    lost = 'stages.2.blocks.1.'
    kept = {key: weight for key, weight in weights.items() if not key.startswith(lost)}
    torch.save(dict(training, state_dict=kept), file)
    with pytest.raises(CheckpointError, match=f'lacks 12 weights: {lost}.*PyramidTNT small, 256'):
        _build(config).init_weights()
