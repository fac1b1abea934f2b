"""Parts that ``frozen_stages``, ``norm_cfg`` and ``norm_eval`` freeze or do not freeze."""

import pytest
import torch
from torch import nn

from ptnt_mm.models import PyramidTNT

from . import golden

STEM = ('patch_embed.', 'outer_pos', 'inner_pos')
MERGES = ('word_merges.', 'sentence_merges.')

FROZEN = {
    -1: (),
    0: STEM,
    1: (*STEM, 'stages.0.'),
    2: (*STEM, 'stages.0.', 'stages.1.', 'word_merges.0.', 'sentence_merges.0.'),
    3: (
        *STEM,
        'stages.0.',
        'stages.1.',
        'stages.2.',
        *(f'{merge}{i}.' for merge in MERGES for i in (0, 1)),
    ),
    4: (*STEM, 'stages.', *MERGES),
}
"""First parts of the names of the weights that each choice freezes."""


def batch_norms(model: nn.Module) -> list[nn.BatchNorm2d]:
    return [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]


@pytest.mark.parametrize('out_indices', [(0, 1, 2, 3), (1,)], ids=str)
@pytest.mark.parametrize('frozen_stages', FROZEN)
def test_exactly_the_named_parameters_are_frozen(build_micro, frozen_stages, out_indices):
    model = build_micro(frozen_stages=frozen_stages, out_indices=out_indices, out_norms=True)
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == (not name.startswith(FROZEN[frozen_stages])), name


@pytest.mark.parametrize('frozen_stages', FROZEN)
def test_exactly_the_frozen_modules_stay_in_evaluation_mode(build_micro, frozen_stages):
    model = build_micro(frozen_stages=frozen_stages, drop_rate=0.1)
    assert model.train() is model
    lists = 'stages', 'word_merges', 'sentence_merges'
    for name, module in model.named_modules():
        if name not in lists and next(module.parameters(), None) is not None:
            frozen = f'{name}.'.startswith(FROZEN[frozen_stages])
            assert module.training != frozen, name


def test_modes_can_be_left_and_entered(build_micro):
    model = build_micro(frozen_stages=1)
    assert model.eval() is model
    assert not any(module.training for module in model.modules())
    model.train()
    assert model.training
    assert model.stages[1].training
    assert not model.stages[0].training
    assert not model.patch_embed.training


@pytest.mark.parametrize('frozen_stages', [0, 2])
def test_training_changes_nothing_frozen(build_micro, frozen_stages):
    model = build_micro(frozen_stages=frozen_stages).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1)
    sum(output.square().mean() for output in model(golden.image(2, 61, 93))).backward()
    optimizer.step()
    for name, value in model.state_dict().items():
        frozen = name.startswith(FROZEN[frozen_stages])
        assert torch.equal(value, before[name]) == frozen, name


def test_frozen_stages_are_not_random(build_micro):
    """No dropout and no drop path in frozen parts, including that of the sentence table."""
    model = build_micro(
        frozen_stages=4, drop_rate=0.5, attn_drop_rate=0.5, drop_path_rate=0.5
    ).train()
    image = golden.image(2, 61, 93)
    torch.testing.assert_close(model(image), model(image), rtol=0, atol=0)


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
