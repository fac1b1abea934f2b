"""The head; ``test_parity.py`` compares its outputs with the authors'."""

import pytest
import torch

from ptnt_mm.models import PlainClassifier, PyramidTNTClassifier

from . import golden


@pytest.fixture
def model(micro_arch) -> PyramidTNTClassifier:
    return golden.filled(PyramidTNTClassifier(micro_arch, num_classes=7))


def test_the_head_reads_the_mean_of_normed_sentences(model):
    model.eval()
    image = golden.image(2, 61, 93)
    outer = model.forward_tokens(image)[-1][1]
    expected = model.norm(outer).mean(dim=1) @ model.head.weight.T + model.head.bias
    torch.testing.assert_close(model(image), expected)
    assert model(image).shape == (2, 7)


@torch.inference_mode()
def test_a_plain_head_reads_the_last_stage_of_a_pyramid(micro_arch):
    backbone = dict(type='PyramidTNT', arch=micro_arch, out_norms=True)
    model = golden.filled(PlainClassifier(backbone, num_classes=7)).eval()
    image = golden.image(2, 61, 93)
    read = model.backbone(image)[-1].mean(dim=(2, 3))
    torch.testing.assert_close(model(image), model.head.fc(read))


def test_every_parameter_gets_a_gradient(model):
    model(golden.image(2, 61, 93)).square().mean().backward()
    assert all(parameter.grad.any() for parameter in model.parameters())


def test_fresh_weights(micro_arch):
    head = PyramidTNTClassifier(micro_arch, num_classes=2000).head
    assert head.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not head.bias.any()


def test_options_reach_the_backbone(micro_arch):
    options = dict(drop_path_rate=0.4, drop_rate=0.2, with_se=True, pretrain_img_size=192)
    model = PyramidTNTClassifier(micro_arch, **options, attention='eager')
    assert model.stages[3].blocks[0].drop_path.rate == pytest.approx(0.4)
    assert model.pos_drop.p == model.stages[0].blocks[0].outer_mlp.drop.p == 0.2
    assert type(model.stages[0].blocks[0].se_layer).__name__ == 'SqueezeExcite'
    assert model.stages[0].blocks[0].outer_attn.eager
    assert model.outer_pos.shape == (1, 24 * 24, 8)
