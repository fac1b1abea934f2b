"""LegacyTNT compared with the classes whose weights it loads: mmpretrain's and timm's first TNT."""

import pytest
import torch
from mmengine.runner import save_checkpoint
from torch import Tensor, nn

from ptnt_mm.models import TNT, LegacyTNT
from ptnt_mm.weights.files import describe_checkpoint
from ptnt_mm.weights.pretrained import load_pretrained
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError

from . import golden
from .make_tnt_golden import ARCH

SIZES = dict(tiny=(ARCH, 64), small=('small', 224))


def mmpretrains(arch: dict | str, size: int) -> nn.Module:
    """mmpretrain's TNT of an arch, with golden weights; its output is the class token."""
    from mmpretrain.models import backbones

    if isinstance(arch, dict):
        names = dict(depth='num_layers', outer_dim='embed_dims_outer', inner_dim='embed_dims_inner')
        names |= dict(outer_heads='num_heads_outer', inner_heads='num_heads_inner')
        arch = {theirs: arch[ours] for ours, theirs in names.items()}
    model = golden.filled(backbones.TNT(arch, img_size=size))
    model.eval()  # returns nothing
    return model


def timms(arch: dict | str, size: int) -> nn.Module:
    """timm's first TNT, with golden weights."""
    import timm

    if arch == 'small':
        return golden.filled(timm.create_model('tnt_s_legacy_patch16_224')).eval()
    model = timm.models.tnt.TNT(
        size,
        embed_dim=arch['outer_dim'],
        inner_dim=arch['inner_dim'],
        depth=arch['depth'],
        num_heads_outer=arch['outer_heads'],
        num_heads_inner=arch['inner_heads'],
        legacy=True,
    )
    return golden.filled(model).eval()


def class_token(model: nn.Module, image: Tensor) -> Tensor:
    """The output of a reference."""
    return model.forward_features(image)[:, 0] if hasattr(model, 'head') else model(image)[0]


@pytest.mark.parametrize('size', ['tiny', pytest.param('small', marks=pytest.mark.slow)])
@pytest.mark.parametrize('build', [mmpretrains, timms])
@torch.inference_mode()
def test_it_computes_what_its_files_were_made_for(build, size, tmp_path):
    arch, pixels = SIZES[size]
    reference = build(arch, pixels)
    # As mmpretrain publishes classifiers.
    file = str(tmp_path / 'tnt.pth')
    save_checkpoint(dict(state_dict=nn.ModuleDict(dict(backbone=reference)).state_dict()), file)
    model = LegacyTNT(arch, pretrain_img_size=pixels, out_type='cls_token').eval()
    report = load_pretrained(model, file, logger='silent')
    assert len(report.loaded) == len(model.state_dict())
    assert [key for key in report.unused if not key.startswith('head.')] == []
    image = golden.image(2, pixels, pixels)
    expected = class_token(reference, image)
    torch.testing.assert_close(model(image)[0], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ('build', 'names'), [(mmpretrains, "mmpretrain's"), (timms, "timm's")], ids=['mm', 'timm']
)
def test_inspect_recognises_the_network_and_the_names(build, names, tmp_path):
    torch.save(build('small', 224).state_dict(), tmp_path / 'tnt.pth')
    found = dict(describe_checkpoint(str(tmp_path / 'tnt.pth')))
    assert (found['arch'], found['names']) == ('LegacyTNT small', names)
    assert found['pretraining'] == '224 px' and found['coverage'].startswith('complete')


def test_it_is_not_the_authors_network():
    with pytest.raises(CheckpointError, match='looks like LegacyTNT.*the model is TNT'):
        load_pretrained(TNT(ARCH, pretrain_img_size=64), timms(ARCH, 64).state_dict())


def test_the_first_words_of_a_patch_see_the_patch_above():
    model = golden.filled(LegacyTNT(ARCH, pretrain_img_size=64))
    image = golden.image(1, 32, 32)
    other = image.clone()
    other[:, :, :16] += 1
    before, after = (model.patch_embed(one)[0].view(2, 2, 4, 4, -1)[1] for one in (image, other))
    assert not torch.equal(before[:, 0], after[:, 0])
    assert torch.equal(before[:, 1:], after[:, 1:])
