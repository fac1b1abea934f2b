"""The code of the page about other libraries, each block with the library that it needs."""

import re

import pytest
import torch
from manual import ROOT, blocks

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


def test_torchvision_detects(capsys: pytest.CaptureFixture):
    detector = run(block_with('FasterRCNN('))['detector'].eval()
    assert 'loss_classifier' in capsys.readouterr().out
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


def test_a_decoder_of_segmentation_models():
    segmenter = run(block_with('smp.DPT'))['segmenter'].eval()
    with torch.no_grad():
        assert segmenter(torch.rand(1, 3, 128, 128)).shape == (1, 3, 128, 128)


def test_adapters_alone_are_trained_and_saved(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    network = run(block_with('LoraConfig'))['network']
    trained, every = network.get_nb_trainable_parameters()
    assert trained < 0.05 * every and '%' in capsys.readouterr().out
    network(torch.rand(2, 3, 64, 64)).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.requires_grad == ('lora_' in name or 'modules_to_save' in name), name
    assert (tmp_path / 'adapter/adapter_model.safetensors').stat().st_size < 0.05 * 4 * every
