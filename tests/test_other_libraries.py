"""The code of the page about other libraries, each block with the library that it needs."""

import re

import pytest
import torch
from manual import ROOT, blocks
from torch import nn

import ptnt_mm.timm  # noqa: F401  registers the networks
from ptnt_mm.weights.published import locate
from ptnt_mm.weights.reader.read import read_checkpoint

PAGE = ROOT / 'docs/other_libraries.md'
BLOCKS = [block for block in blocks(PAGE) if block.language == 'python']
LIBRARIES = ('timm', 'torchvision', 'transformers', 'segmentation_models_pytorch', 'peft')


def run(text: str) -> dict:
    """Run a block in an empty namespace, if its libraries are installed."""
    for library in LIBRARIES:
        if re.search(rf'^(import|from) {library}\b', text, re.MULTILINE):
            pytest.importorskip(library)
    names = {'__name__': 'page'}
    exec(compile(text, PAGE.name, 'exec'), names)
    return names


def block_with(word: str) -> str:
    (text,) = (block.text for block in BLOCKS if word in block.text)
    return text


def test_pytorch_alone_trains_from_the_file():
    backbone = run(block_with('load_pretrained('))['backbone']
    learned = read_checkpoint(locate('ptnt_ti_distilled'))
    assert all(parameter.grad is not None for parameter in backbone.parameters())
    for name, own in backbone.named_parameters():
        # A step of AdamW is at most its learning rate, and some decay.
        torch.testing.assert_close(own.detach(), learned[name].float(), rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize('block', ['out_indices=(1', 'peft'])
def test_weights_reach_a_model_of_timm(block: str, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    has_published_weights(run(block_with(block))['network'])


def has_published_weights(model: nn.Module) -> None:
    own = model.state_dict()
    (name,) = (key for key in own if key.endswith('stages.2.blocks.0.outer_norm1.weight'))
    learned = read_checkpoint(locate('ptnt_ti_distilled'))
    assert own[name].equal(learned['stages.2.blocks.0.outer_norm1.weight'])


def test_torchvision_detects(capsys: pytest.CaptureFixture):
    detector = run(block_with('FasterRCNN('))['detector'].eval()
    assert 'loss_classifier' in capsys.readouterr().out
    has_published_weights(detector)
    with torch.no_grad():
        (found,) = detector([torch.rand(3, 70, 100)])
    assert found['boxes'].shape[1:] == (4,)


def test_models_of_transformers_train():
    names = run(block_with('RTDetrConfig'))
    images = torch.rand(2, 3, 128, 160)
    boxes = [dict(class_labels=torch.tensor([1]), boxes=torch.tensor([[0.5, 0.5, 0.2, 0.3]]))] * 2
    masks = [torch.ones(1, 128, 160)] * 2
    for name, labels in (
        ('detr', dict(labels=boxes)),
        ('rt_detr', dict(labels=boxes)),
        ('mask2former', dict(mask_labels=masks, class_labels=[torch.tensor([1])] * 2)),
    ):
        model = names[name]
        model(pixel_values=images, **labels).loss.backward()
        gradients = [key for key, value in model.named_parameters() if value.grad is not None]
        assert any('stages.0' in key for key in gradients), name


def test_weights_reach_a_model_of_transformers():
    names = run(block_with('load_state_dict'))
    learned, own = names['start'].state_dict(), names['network'].state_dict()
    assert own and all(torch.equal(learned[key], value) for key, value in own.items())


def test_weights_reach_a_model_of_segmentation_models():
    names = run(block_with('smp.Unet'))
    own = names['segmenter'].encoder.model.state_dict()
    learned = read_checkpoint(names['file'])
    loaded = [key for key in learned if f'model.{key}' in own]
    assert len(loaded) > 300
    assert all(torch.equal(own[f'model.{key}'], learned[key]) for key in loaded)


@pytest.mark.parametrize(
    ('decoder', 'options'),
    [
        *[(name, {}) for name in ('Unet', 'UnetPlusPlus', 'MAnet', 'Linknet', 'FPN', 'PSPNet')],
        *[(name, {}) for name in ('UPerNet', 'Segformer')],
        ('DPT', dict(decoder_readout='ignore')),
        ('PAN', dict(encoder_output_stride=32)),
    ],
)
def test_decoders_of_segmentation_models(decoder: str, options: dict):
    smp = pytest.importorskip('segmentation_models_pytorch')
    segmenter = getattr(smp, decoder)(
        'tu-pyramid_tnt_ti_fpn', encoder_weights=None, classes=3, **options
    ).eval()
    masks = segmenter(torch.rand(1, 3, 256, 320))
    assert masks.shape == (1, 3, 256, 320)
    masks.mean().backward()
    first = [p for name, p in segmenter.named_parameters() if name.endswith('common_conv.0.weight')]
    assert first[0].grad is not None


@pytest.mark.parametrize('decoder', ['DeepLabV3', 'DeepLabV3Plus'])
@pytest.mark.parametrize('network', ['pyramid_tnt_ti_fpn', 'swin_tiny_patch4_window7_224'])
def test_decoders_that_need_dilation(decoder: str, network: str):
    smp = pytest.importorskip('segmentation_models_pytorch')
    with pytest.raises(TypeError, match='output_stride'):
        getattr(smp, decoder)(f'tu-{network}', encoder_weights=None)


def test_adapters_alone_are_trained_and_saved(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    network = run(block_with('LoraConfig'))['network']
    trained, every = network.get_nb_trainable_parameters()
    assert trained < 0.05 * every and '%' in capsys.readouterr().out
    network(torch.rand(2, 3, 64, 64)).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.requires_grad == ('lora_' in name or 'modules_to_save' in name), name
    assert (tmp_path / 'adapter/adapter_model.safetensors').stat().st_size < 0.05 * 4 * every
