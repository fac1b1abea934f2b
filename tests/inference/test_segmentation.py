"""Segmenters of mmseg on images of all sizes, and the format of their results."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from exported import ABOUT, replace_network
from mmengine.config import Config
from mmengine.structures import PixelData
from PIL import Image
from pycocotools import mask as coco
from repository import ROOT

import ptnt_mm
from configs import models
from ptnt_mm.api import infer, load_predictor
from ptnt_mm.deploy.export_info import with_export_info
from ptnt_mm.utils.colours import class_colours
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.export.supported_models import build_network
from ptnt_mm.workbench.inference.predictor import Predictor
from ptnt_mm.workbench.inference.results import Results, closing_lines

from .samples import MAP_CLASSES, SEGMENTER, photograph, save, write_segmenter

Narrow = Callable[..., Config]


@pytest.fixture(scope='module')
def narrow(micro_arch: dict) -> Narrow:
    """A config with a narrow backbone, by default the demo's, and changes to it."""

    def make(name: str = SEGMENTER, **options: object) -> Config:
        config = models.narrow(ptnt_mm.get_config(name), micro_arch)
        config.merge_from_dict(options)
        return config

    return make


@pytest.fixture(scope='module')
def checkpoint(narrow: Narrow, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_segmenter(tmp_path_factory.mktemp('checkpoint') / 'iter_1.pth', narrow())


@pytest.fixture(scope='module')
def segmenter(narrow: Narrow, checkpoint: Path) -> Predictor:
    return load_predictor(narrow(), str(checkpoint), 'cpu')


def sample_of(labels: np.ndarray):
    from mmseg.structures import SegDataSample

    return SegDataSample(pred_sem_seg=PixelData(data=torch.from_numpy(labels)[None]))


SIZES = [(1, 1), (1, 9), (3, 400), (400, 3), (77, 131), (683, 1024), (2048, 512)]


@pytest.mark.parametrize('size', SIZES)
def test_any_size(size: tuple[int, int], segmenter: Predictor):
    image = photograph(*size)
    sample = segmenter.predict(image)
    labels = sample.pred_sem_seg.data
    assert labels.shape == (1, *size) and labels.device.type == 'cpu'
    segments = segmenter.describe(sample)['segments']
    shares = [segment['share'] for segment in segments]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1, abs=1e-4)
    restored = np.full(size, -1)
    for segment in segments:
        restored[coco.decode(segment['mask']).astype(bool)] = MAP_CLASSES.index(segment['label'])
    np.testing.assert_array_equal(restored, labels[0])
    drawn = segmenter.draw(image, sample)
    assert drawn.shape == image.shape and drawn.dtype == np.uint8


def test_images_smaller_than_a_token_without_resizing(narrow: Narrow, checkpoint: Path):
    config = narrow()
    del config.test_dataloader.dataset.pipeline[1]
    segmenter = load_predictor(config, str(checkpoint), 'cpu')
    for size in ((1, 1), (3, 40), (9, 11)):
        assert segmenter.predict(photograph(*size)).pred_sem_seg.shape == size


@pytest.mark.parametrize('mode', ['whole', 'slide'])
def test_a_size_of_no_multiple_of_the_stride_is_that_of_a_padded_image(
    mode: str, narrow: Narrow, checkpoint: Path
):
    settings = {
        'model.test_cfg': dict(mode=mode, crop_size=(64, 128), stride=(40, 80)),
        # Padding has the value of this pixel.
        'model.data_preprocessor': dict(mean=[128.0] * 3),
        'test_dataloader.dataset.pipeline': [
            dict(type='LoadImageFromFile'),
            dict(type='PackSegInputs'),
        ],
    }
    segmenter = load_predictor(narrow(**settings), str(checkpoint), 'cpu')
    segmenter.model.data_preprocessor.pad_size_divisor = 1  # mmseg's fork has it, for training
    exported = build_network(segmenter.model)
    random = np.random.default_rng(0)
    for height, width in random.integers(1, 200, (12, 2)):
        image = random.integers(256, size=(height, width, 3), dtype=np.uint8)
        padding = [(0, -height % 64), (0, -width % 64), (0, 0)]
        padded = np.pad(image, padding, constant_values=128)
        found = segmenter.predict(image).pred_sem_seg.data[0]
        expected = segmenter.predict(padded).pred_sem_seg.data[0, :height, :width]
        assert torch.equal(found, expected), (height, width)
        if mode == 'whole':
            pixels = torch.from_numpy(image[None, ..., ::-1].copy())
            (labels,) = exported(pixels, torch.tensor([[height, width]]))
            assert (labels[0] == expected).float().mean() > 0.999


@pytest.mark.parametrize('mode', ['whole', 'slide'])
@pytest.mark.parametrize('size', [(77, 131), (700, 300)])
def test_the_same_as_mmsegs_own(mode: str, size: tuple[int, int], narrow: Narrow, checkpoint: Path):
    from mmseg.apis import inference_model, init_model

    options = {
        'model.test_cfg': dict(mode=mode, crop_size=(64, 64), stride=(40, 40)),
        # Padding is removed again, for any size.
        'model.data_preprocessor.test_cfg': dict(size=None, size_divisor=50),
    }
    config, image = narrow(**options), photograph(*size)
    theirs = inference_model(init_model(config, str(checkpoint), device='cpu'), image)
    segmenter = load_predictor(narrow(**options), str(checkpoint), 'cpu')
    assert theirs.pred_sem_seg.data.unique().numel() > 1
    assert torch.equal(segmenter.predict(image).pred_sem_seg.data, theirs.pred_sem_seg.data)


def test_many_classes_of_a_large_image_are_compared_in_parts(narrow: Narrow, tmp_path: Path):
    from mmseg.apis import inference_model, init_model

    config = narrow(**{'model.decode_head.num_classes': 560})
    file, image = write_segmenter(tmp_path / 'x.pth', config), photograph(512, 512)
    theirs = inference_model(init_model(config, str(file), device='cpu'), image).pred_sem_seg.data
    found = load_predictor(config, str(file), 'cpu').predict(image).pred_sem_seg.data
    assert torch.equal(found, theirs)
    assert theirs.unique().max() > 2 * 2**26 // image[..., 0].size, 'also of the third part'


def test_steps_of_the_pipeline_named_by_class(narrow: Narrow, checkpoint: Path):
    from mmseg.datasets.transforms import LoadAnnotations, PackSegInputs, Resize

    config = narrow()
    steps = config.test_dataloader.dataset.pipeline
    for step, kind in zip(steps[1:], (Resize, LoadAnnotations, PackSegInputs), strict=True):
        assert step.type == kind.__name__
        step.type = kind
    segmenter = load_predictor(config, str(checkpoint), 'cpu')
    assert segmenter.predict(photograph(30, 40)).pred_sem_seg.shape == (30, 40)


def test_one_channel_for_the_foreground(narrow: Narrow, tmp_path: Path):
    from mmseg.apis import inference_model, init_model

    loss = dict(type='CrossEntropyLoss', use_sigmoid=True)
    head = dict(num_classes=2, out_channels=1, threshold=0.4, loss_decode=loss)
    config = narrow(**{'model.decode_head': head})
    model = models.build(config)
    torch.nn.init.normal_(model.decode_head.conv_seg.weight)
    file = save(model, config, dict(classes=('rest', 'road')), tmp_path / 'road.pth')
    image = photograph(90, 120)
    segmenter = load_predictor(config, str(file), 'cpu')
    sample = segmenter.predict(image)
    theirs = inference_model(init_model(config, str(file), device='cpu'), image)
    labels = theirs.pred_sem_seg.data.long()
    assert labels.unique().tolist() == [0, 1]
    assert torch.equal(sample.pred_sem_seg.data, labels)
    assert {s['label'] for s in segmenter.describe(sample)['segments']} == {'rest', 'road'}


def test_what_is_written(segmenter: Predictor):
    labels = np.zeros((20, 30), dtype=np.int64)
    labels[5:15, 10:20] = 4
    labels[0, 0] = 2
    first, second, third = segmenter.describe(sample_of(labels))['segments']
    for segment, label, index, pixels in (
        (first, 'background', 0, 499),
        (second, 'cup', 4, 100),
        (third, 'coin', 2, 1),
    ):
        assert (segment['label'], segment['index']) == (label, index)
        assert segment['share'] == round(pixels / 600, 6)
    np.testing.assert_array_equal(coco.decode(second['mask']), labels == 4)
    assert isinstance(second['mask']['counts'], str) and second['mask']['size'] == [20, 30]


def test_the_last_line_says_what_was_found(segmenter: Predictor, tmp_path: Path):
    results = Results(tmp_path / 'out')
    for columns in (10, 30):
        labels = np.zeros((20, 30), dtype=np.int64)
        labels[:, :columns] = 4
        results.add(file='a.png', **segmenter.describe(sample_of(labels)))
    *_, last = closing_lines(results, segmenter).splitlines()
    assert last == 'Pixels, on average: 66.7% cup, 33.3% background'


@pytest.mark.parametrize('classes', [7, 300])
def test_the_recipe_for_index_maps(classes: int, narrow: Narrow, tmp_path: Path, monkeypatch):
    config = narrow(**{'model.decode_head.num_classes': classes})
    segmenter = load_predictor(config, str(write_segmenter(tmp_path / 'x.pth', config)), 'cpu')
    assert segmenter.classes is None
    labels = np.random.default_rng(0).integers(classes, size=(20, 30))
    entry = dict(width=30, height=20, **segmenter.describe(sample_of(labels)))
    page = (ROOT / 'docs' / 'inference.md').read_text(encoding='utf-8')
    (recipe,) = re.findall(r'```python\n(import numpy as np\n.*?)```', page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(recipe, dict(entry=json.loads(json.dumps(entry))))
    with Image.open('a.png') as stored:
        np.testing.assert_array_equal(np.asarray(stored), labels)


def test_a_model_without_names_has_numbers_and_colours(narrow: Narrow, tmp_path: Path):
    config = narrow(**{'model.decode_head.num_classes': 9})
    segmenter = load_predictor(config, str(write_segmenter(tmp_path / 'x.pth', config)), 'cpu')
    assert segmenter.classes is None
    sample = sample_of(np.full((60, 90), 8))
    assert segmenter.describe(sample)['segments'][0]['label'] == 'class 8'
    assert len(np.unique(segmenter.draw(photograph(60, 90), sample)[10, 10])) > 1


def test_an_exported_model_without_names_has_colours(tmp_path: Path, monkeypatch):
    about = replace(ABOUT, task='segmentation', classes=None)
    file, picture = tmp_path / 'x.onnx', tmp_path / 'x.png'
    file.write_bytes(with_export_info(b'body' * 100, about, '.onnx'))
    replace_network(monkeypatch, ['labels'], lambda images: [images[..., 0]])
    Image.new('RGB', (90, 60), (8, 8, 8)).save(picture)
    infer(None, file, picture, tmp_path / 'out')
    drawn = np.asarray(Image.open(tmp_path / 'out/drawn/x.png'))
    assert abs(drawn[0, 0] - (8 + np.array(class_colours(9)[8])) / 2).max() <= 1


def test_scores_are_refused(narrow: Narrow, checkpoint: Path):
    with pytest.raises(UserError, match=r'`score_thr=0\.5`: .* has no scores: omit it'):
        load_predictor(narrow(), str(checkpoint), 'cpu', score_thr=0.5)


def test_ade20ks_names_and_colours(narrow: Narrow, tmp_path: Path):
    config = narrow('semantic_fpn_ptnt_ti_40k_ade20k')
    file = save(models.build(config), config, {}, tmp_path / 'iter_1.pth')
    segmenter = load_predictor(config, str(file), 'cpu')
    assert segmenter.classes[:2] == ('wall', 'building') and len(segmenter.classes) == 150
    labels = np.zeros((9, 9), dtype=np.int64)
    drawn = segmenter.draw(np.zeros((9, 9, 3), np.uint8), sample_of(labels))
    assert drawn[0, 0].tolist() == [60, 60, 60], "half of ADE20K's (120, 120, 120)"
