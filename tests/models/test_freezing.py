"""Parts that ``frozen_stages``, ``norm_cfg`` and ``norm_eval`` freeze or do not freeze."""

import torch
from torch import nn

from ptnt_mm.models import PyramidTNT

from . import golden


def batch_norms(model: nn.Module) -> list[nn.BatchNorm2d]:
    return [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]


def test_norm_eval_keeps_statistics_but_trains_scale_and_shift(build_micro):
    model = build_micro(norm_eval=True).train()
    before = [norm.running_mean.clone() for norm in batch_norms(model)]
    sum(output.square().mean() for output in model(golden.image(2, 61, 93))).backward()
    assert len(before) == 5
    for norm, mean in zip(batch_norms(model), before, strict=True):
        assert torch.equal(norm.running_mean, mean)
        assert norm.weight.grad.any()
    assert model.patch_embed.training


def test_norm_cfg_freezes_scale_and_shift_alone(build_micro):
    """With ``norm_eval``, this freezes the norms of a stem and trains its convolutions."""
    model = build_micro(norm_cfg=dict(type='BN', requires_grad=False), norm_eval=True)
    frozen = {id(p) for norm in batch_norms(model) for p in norm.parameters()}
    assert len(frozen) == 10
    for parameter in model.parameters():
        assert parameter.requires_grad == (id(parameter) not in frozen)


def test_norm_cfg_can_synchronise():
    with torch.device('meta'):
        model = PyramidTNT('tiny', norm_cfg=dict(type='SyncBN'), norm_eval=True).train()
    norms = [module for module in model.modules() if isinstance(module, nn.SyncBatchNorm)]
    assert len(norms) == 5
    assert not batch_norms(model)
    assert not any(norm.training for norm in norms)
