"""Exported classifiers: the probabilities of mmpretrain, without torch."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from configs.models import build, narrow
from inference.samples import CLASSES, photograph, save
from mmengine.config import Config
from mmpretrain.structures import DataSample
from PIL import Image
from torch import nn

import ptnt_mm
from ptnt_mm.api import export, load_predictor
from ptnt_mm.deploy import Deployed
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.export.evaluation import file_size
from ptnt_mm.workbench.export.formats import OLDEST_TORCH
from ptnt_mm.workbench.export.supported_models import build_network

EDGE = dict(type='ResizeEdge', scale=72, backend='pillow', interpolation='bicubic')
CROP = dict(type='CenterCrop', crop_size=64)


def small_config(arch: dict, *steps: dict) -> Config:
    config = narrow(
        ptnt_mm.get_config('demo_classifier_ptnt_ti'),
        dict(arch, depths=(1,) * 4, inner_depths=(1,) * 4),
    )
    pipeline = [dict(type='LoadImageFromFile'), *steps, dict(type='PackInputs')]
    for loader in (config.test_dataloader, config.val_dataloader):
        loader.dataset.pipeline = pipeline
    return config


def random_model(config: Config) -> nn.Module:
    torch.manual_seed(0)
    model = build(config).eval()
    nn.init.normal_(model.head.fc.weight)
    return model


@pytest.mark.skipif(torch.__version__ < OLDEST_TORCH, reason='torch is too old to export')
def test_a_file_predicts_as_mmpretrain_does(micro_arch: dict, tmp_path: Path, capsys):
    config = small_config(micro_arch, EDGE, CROP)
    model = random_model(config)
    checkpoint = str(save(model, config, dict(classes=CLASSES), tmp_path / 'x.pth'))
    for i, name in enumerate(CLASSES):
        folder = tmp_path / 'val' / name
        folder.mkdir(parents=True)
        Image.fromarray(photograph(90 + i, 120 - 9 * i)).save(folder / 'x.png')
    config.test_dataloader.dataset.data_root = str(tmp_path)
    file = export(config, checkpoint, tmp_path / 'x.onnx', evaluate=True)
    printed = capsys.readouterr().out
    assert 'images of 64x64' in printed and '64x64: largest differences: scores' in printed
    assert 'top-1  0.' in printed
    deployed, host = Deployed(file), load_predictor(config, checkpoint)
    assert run('infer', [str(tmp_path / 'val'), str(file), '--out', str(tmp_path / 'out')]) == 0
    rows = json.loads((tmp_path / 'out' / 'predictions.json').read_text())['images']
    found = {tmp_path / 'val' / row['file']: row['classes'] for row in rows}
    assert deployed.about.task == 'classification' and deployed.classes == list(CLASSES)
    for image in tmp_path.glob('val/*/*.png'):
        expected = host.predict(image)
        np.testing.assert_allclose(deployed(image), expected.pred_score, atol=1e-5)
        told = host.describe(expected)['classes']
        assert [c['label'] for c in found[image]] == [c['label'] for c in told]


@pytest.mark.parametrize(
    ('steps', 'common'), [([EDGE, CROP], (64, 64)), ([EDGE], None), ([], None)]
)
def test_a_file_has_the_size_of_all_images(micro_arch: dict, steps: list[dict], common: tuple):
    view = ConfigView(small_config(micro_arch, *steps))
    assert file_size(view, None) == file_size(view, common) == common
    made = 'different sizes' if common is None else '64x64 pixels'
    with pytest.raises(UserError, match=rf'`size=\(96, 64\)`: images of this .* have {made} after'):
        file_size(view, (96, 64))


@pytest.mark.parametrize('to_rgb', [False, True])
def test_pixels_and_probabilities_are_those_of_the_host(micro_arch: dict, to_rgb: bool):
    config = small_config(micro_arch)
    config.model.data_preprocessor.update(to_rgb=to_rgb, mean=[9, 99, 120], std=[50, 60, 70])
    model, image = random_model(config), photograph(64, 96)
    network = build_network(model)
    assert network.task == 'classification'
    bgr = torch.from_numpy(image[..., ::-1].transpose(2, 0, 1).copy())
    with torch.no_grad():
        (expected,) = model.test_step(dict(inputs=[bgr], data_samples=[DataSample()]))
        (found,) = network(torch.from_numpy(image)[None], torch.tensor([[64, 96]]))
    torch.testing.assert_close(found[0], expected.pred_score)


def test_other_heads_and_none_are_left_to_the_host(micro_arch: dict):
    config = small_config(micro_arch)
    head = dict(
        type='MultiLabelLinearClsHead', num_classes=4, in_channels=config.model.head.in_channels
    )
    for other in (head, None):
        config.model.update(head=other, train_cfg=None)
        assert build_network(build(config)).task == 'features'
