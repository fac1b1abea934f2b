"""The interface of the backbone."""

import itertools

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models import PyramidTNT

from . import golden


@pytest.mark.slow
@torch.inference_mode()
def test_the_largest_size(build_micro):
    model = build_micro(out_indices=(3,)).eval()
    assert model(golden.image(1, 2048, 2048))[0].shape == (1, 8, 32, 32)


@pytest.mark.slow
@torch.inference_mode()
def test_a_published_arch_at_the_size_of_coco_images():
    outputs = PyramidTNT('tiny').eval()(golden.image(1, 800, 1333))
    assert [tuple(output.shape[1:]) for output in outputs] == [
        (80, 100, 167), (160, 50, 84), (320, 25, 42), (320, 13, 21)
    ]  # fmt: skip


def test_padding_is_with_zeros_at_the_bottom_and_right(build_micro):
    model = build_micro().eval()
    image = golden.image(1, 61, 93)
    padded = torch.zeros(1, 3, 64, 96)
    padded[:, :, :61, :93] = image
    torch.testing.assert_close(model(image), model(padded), rtol=0, atol=0)


@torch.inference_mode()
def test_a_grid_of_the_same_area_is_another_grid(build_micro):
    """8 x 32 tokens are as many as the 16 x 16 of pretraining, but at other positions."""
    model = build_micro(out_indices=(0,)).eval()
    image = golden.image(1, 64, 256)
    inner, outer, _ = model.patch_embed(image)
    table = model.outer_pos.mT.unflatten(2, (16, 16))
    table = F.interpolate(table, (8, 32), mode='bicubic').flatten(2).mT
    expected = model.stages[0](inner + model.inner_pos, outer + table, (8, 32))[1]
    torch.testing.assert_close(model(image)[0].flatten(2).mT, expected)
    assert not torch.allclose(table, model.outer_pos)


@torch.inference_mode()
def test_tokens_of_every_stage(build_micro):
    model = build_micro().eval()
    image = golden.image(2, 61, 93)
    levels = model.forward_tokens(image)
    grids = [(8, 12), (4, 6), (2, 3), (1, 2)]
    for (inner, outer, hw), grid, c, channels, output in zip(
        levels, grids, (2, 4, 4, 2), (8, 16, 16, 8), model(image), strict=True
    ):
        assert hw == grid
        n = hw[0] * hw[1]
        assert inner.shape == (2 * n, 16, c)
        assert outer.shape == (2, n, channels)
        assert torch.equal(output, outer.mT.unflatten(2, hw))


@pytest.mark.parametrize('out_indices', [(0, 1, 2, 3), (1, 3)])
@torch.inference_mode()
def test_output_norms(micro_arch, build_micro, out_indices):
    model = build_micro(out_indices=out_indices, out_norms=True).eval()
    plain = PyramidTNT(micro_arch, out_indices=out_indices).eval()
    plain.load_state_dict(model.state_dict(), strict=False)
    image = golden.image(1, 61, 93)
    own = {name.split('.')[0] for name in model.state_dict().keys() - plain.state_dict().keys()}
    assert own == {f'norm{i}' for i in out_indices}
    for i, normed, output in zip(out_indices, model(image), plain(image), strict=True):
        expected = model.get_submodule(f'norm{i}')(output.permute(0, 2, 3, 1))
        torch.testing.assert_close(normed, expected.permute(0, 3, 1, 2))


def test_an_arch_can_be_a_dict(micro_arch):
    assert PyramidTNT(micro_arch).out_channels == (8, 16, 16, 8)
    lists = {key: list(v) if isinstance(v, tuple) else v for key, v in micro_arch.items()}
    assert PyramidTNT(lists).out_channels == (8, 16, 16, 8)


def test_the_pretraining_size_can_be_chosen():
    with torch.device('meta'):
        model = PyramidTNT('small', pretrain_img_size=320)
    assert model.outer_pos.shape == (1, 1600, 128)
    assert [tuple(stage.relative_pos.shape) for stage in model.stages] == [
        (1, 4, 1600, 100), (1, 8, 400, 100), (1, 16, 100, 100), (1, 16, 25, 25)
    ]  # fmt: skip


def test_the_only_buffers_are_those_of_batch_norms(build_micro):
    names = {name.rpartition('.')[2] for name, _ in build_micro().named_buffers()}
    assert names == {'running_mean', 'running_var', 'num_batches_tracked'}


def test_a_model_without_memory():
    """Nothing in the constructor reads a value, so the meta device can build it."""
    with torch.device('meta'):
        model = PyramidTNT('base')
    assert all(parameter.is_meta for parameter in model.parameters())
    assert len(model.stages) == 4


def test_a_stem_of_patches_takes_no_norm(micro_arch: dict):
    with pytest.raises(ValueError, match="'GN'.*: stem='patch' has only LayerNorms, so omit it"):
        PyramidTNT(micro_arch, stem='patch', norm_cfg=dict(type='GN', num_groups=1))


@pytest.mark.parametrize('stem', ['conv', 'patch'])
@pytest.mark.parametrize('inner', list(itertools.product((0, 1), repeat=4)))
def test_any_stage_may_lack_inner_transformers(micro_arch: dict, inner: tuple, stem: str):
    """Every parameter gets a gradient: there are no words after the last stage that uses them."""
    model = PyramidTNT(micro_arch | dict(inner_depths=inner), stem=stem)
    inner_blocks = [hasattr(stage.blocks[0], 'inner_attn') for stage in model.stages]
    assert inner_blocks == list(map(bool, inner))
    outputs = model.forward_tokens(golden.image(2, 61, 93))
    assert [words is not None for words, _, _ in outputs] == [any(inner[i:]) for i in range(4)]
    sum(outer.square().mean() for _, outer, _ in outputs).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []
