"""The configs for mmrotate, on the forks: elsewhere they cannot be read."""

from importlib.util import find_spec

import pytest
import torch
from mmengine.config import Config
from torch import nn

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.zoo import config_names

from .models import HOSTS

PUBLISHED = [name for name in config_names() if name.endswith('_dota')]
NAMES = [name for name in HOSTS if HOSTS[name] == 'mmrotate']

needs_mmrotate = pytest.mark.skipif(not NAMES, reason='mmrotate is for the forks of the hosts')


@pytest.mark.skipif(bool(NAMES), reason='mmrotate is installed')
@pytest.mark.parametrize('name', PUBLISHED)
def test_without_mmrotate_the_error_names_it(name: str):
    with pytest.raises(
        UserError, match=r'mmrotate is not installed.*It runs on the forks .*install\.md'
    ):
        read_config(name)


def test_both_detectors_are_there():
    assert PUBLISHED == ['oriented_rcnn_ptnt_s_1x_dota', 'rotated_retinanet_ptnt_s_1x_dota']
    assert (PUBLISHED if find_spec('mmrotate') else []) == NAMES


@needs_mmrotate
def test_the_recipe_is_mmrotates_with_swins_optimizer(config: Config):
    assert (config.train_cfg.max_epochs, config.param_scheduler[1].milestones) == (12, [8, 11])
    assert config.train_dataloader.batch_size == config.auto_scale_lr.base_batch_size == 2
    assert config.optim_wrapper.clip_grad.max_norm == 35
    assert config.optim_wrapper.optimizer.lr == 1e-4
    assert config.optim_wrapper.paramwise_cfg.custom_keys.backbone.lr_mult == 0.1
    head = config.model.get('rpn_head') or config.model.bbox_head
    assert head.bbox_coder.angle_version == 'le90'


@needs_mmrotate
def test_learns_and_predicts_boxes_with_an_angle(model: nn.Module):
    from mmdet.structures import DetDataSample
    from mmengine.structures import InstanceData
    from mmrotate.structures import RotatedBoxes

    boxes = RotatedBoxes(torch.tensor([[60.0, 60, 50, 30, 0.5]]))
    sample = DetDataSample(metainfo=dict(img_shape=(128, 128), scale_factor=(1.0, 1.0)))
    sample.gt_instances = InstanceData(bboxes=boxes, labels=torch.tensor([3]))
    sample.ignored_instances = InstanceData(bboxes=boxes[:0], labels=torch.zeros(0).long())
    data = dict(inputs=[torch.zeros(3, 128, 128, dtype=torch.uint8)], data_samples=[sample])
    losses = model(**model.data_preprocessor(data, training=True), mode='loss')
    total, _ = model.parse_losses(losses)
    total.backward()
    assert total.isfinite()
    assert all(p.grad is not None for p in model.backbone.parameters() if p.requires_grad)
    with torch.no_grad():
        (found,) = model.eval().test_step(data)
    assert found.pred_instances.bboxes.shape[1] == 5
