"""Classifiers of mmpretrain: their best classes, in JSON and in pictures."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from configs.models import build, narrow
from mmengine.config import Config
from mmpretrain.structures import DataSample
from PIL import Image
from torch import nn

import ptnt_mm
from ptnt_mm.api import load_predictor
from ptnt_mm.registry import HOOKS
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.evaluation_outputs import add_drawing
from ptnt_mm.workbench.inference.predictor import Predictor
from ptnt_mm.workbench.inference.results import Results, closing_lines

from .samples import CLASSES, photograph, save


def predictor(
    name: str, arch: dict, folder: Path, classes: tuple, changes: dict | None = None, **options
) -> Predictor:
    config = narrow(ptnt_mm.get_config(name), arch)
    config.merge_from_dict(changes or {})
    torch.manual_seed(0)
    model = build(config)
    nn.init.normal_(model.head.fc.weight)
    file = save(model, config, dict(classes=classes), folder / 'epoch_1.pth')
    return load_predictor(config, str(file), 'cpu', **options)


def test_the_best_classes_come_first(micro_arch: dict, tmp_path: Path):
    classifier = predictor('demo_classifier_ptnt_ti', micro_arch, tmp_path, CLASSES)
    image = photograph(50, 70)
    sample = classifier.predict(image)
    found = classifier.describe(sample)['classes']
    assert [one['label'] for one in found] == [CLASSES[one['index']] for one in found]
    scores = [one['score'] for one in found]
    assert scores == sorted(scores, reverse=True) and sum(scores) == pytest.approx(1, abs=1e-3)
    drawn = classifier.draw(image, sample)
    assert drawn.shape == (6 * 50, 6 * 70, 3), 'a small image grows to 256 pixels'
    assert not drawn[:5, :5].any() and drawn[-50:, -50:].any()


def test_low_scores_are_left_out_and_five_are_enough(micro_arch: dict, tmp_path: Path):
    name = 'classifier_ptnt_ti_300e_imagenet'
    known = tuple(f'kind {i}' for i in range(1000))
    classifier = predictor(name, micro_arch, tmp_path, known, score_thr=0.2)
    scores = torch.full((1000,), 0.1)
    scores[[7, 9]] = torch.tensor([0.3, 0.25])
    sample = DataSample().set_pred_score(scores)
    assert [one['label'] for one in classifier.describe(sample)['classes']] == ['kind 7', 'kind 9']
    classifier.score_thr = 0.0
    assert len(classifier.describe(sample)['classes']) == 5


def test_the_best_classes_are_counted(micro_arch: dict, tmp_path: Path):
    classifier = predictor('demo_classifier_ptnt_ti', micro_arch, tmp_path, CLASSES)
    results = Results(tmp_path / 'out')
    for best in (1, 3, 1):
        sample = DataSample().set_pred_score(torch.eye(4)[best])
        results.add(file='a.png', **classifier.describe(sample))
    *_, last = closing_lines(results, classifier).splitlines()
    assert last == f'Best class of each image: 2 {CLASSES[1]}, 1 {CLASSES[3]}'


LOGITS = (3.0, -3.0, 2.0, 1.0, -1.0, 0.5, 0.2, 0.1)
"""Sigmoids from 0.95 to 0.05, of which six are above 0.5."""


@pytest.mark.parametrize(
    ('head', 'shown'),
    [
        (dict(type='MultiLabelLinearClsHead'), [0, 2, 3, 5, 6, 7]),  # by default, thr=0.5
        (dict(type='MultiLabelLinearClsHead', thr=0.04), [0, 2, 3, 5, 6, 7, 4, 1]),
        (dict(type='MultiLabelLinearClsHead', thr=0.94), [0]),
        (dict(type='MultiLabelLinearClsHead', thr=0.99), []),
        (dict(type='MultiLabelLinearClsHead', topk=7), [0, 2, 3, 5, 6, 7, 4]),
        (dict(type='CSRAClsHead', num_heads=1, lam=0.1, thr=0.3), [0, 2, 3, 5, 6, 7]),
        (dict(type='LinearClsHead'), [0, 2, 3, 5, 6]),
    ],
)
def test_a_multi_label_head_decides_which_are_written(
    head: dict, shown: list[int], micro_arch: dict, tmp_path: Path
):
    config = narrow(ptnt_mm.get_config('demo_classifier_ptnt_ti'), micro_arch)
    channels = config.model.head.in_channels
    config.model.head = dict(num_classes=8, in_channels=channels, **head)
    config.model.data_preprocessor.num_classes = 8
    names = tuple('abcdefgh')
    model = build(config)
    file = save(model, config, dict(classes=names), tmp_path / 'epoch_1.pth')
    classifier = load_predictor(config, str(file), 'cpu')
    # Whatever the image.
    classifier.model.head.forward = lambda features: torch.tensor([LOGITS])
    image = photograph(60, 80)
    sample = classifier.predict(image)
    found = classifier.describe(sample)['classes']
    assert [entry['index'] for entry in found] == shown
    assert [entry['label'] for entry in found] == [names[index] for index in shown]
    if not shown:
        assert classifier.highest_below == pytest.approx(0.9526, abs=1e-4)
        assert classifier.limit == 'model.head.thr=0.99'
    # A line for each, from the top of the enlarged image.
    lines = classifier.draw(image, sample)[:, 2].any(axis=1)
    assert lines.argmax() // 15 == len(shown)


def test_pixels_of_cifar_are_rgb(micro_arch: dict, tmp_path: Path):
    """Its data set returns RGB, so the channels of an image file must be reversed."""
    classifier = predictor('classifier_tnt_s_384_cifar10', micro_arch, tmp_path, ())
    seen = []
    classifier.model.data_preprocessor.register_forward_pre_hook(lambda _, args: seen.append(args))
    red = np.zeros((32, 32, 3), np.uint8)
    red[..., 2] = 200  # BGR
    classifier.predict(red)
    pixels = seen[0][0]['inputs']
    assert pixels[0].amax(dim=(1, 2)).tolist() == [200, 0, 0]


@pytest.mark.parametrize('to_rgb', [True, False])
def test_a_whole_image_has_the_channels_and_the_scale_of_training(
    micro_arch: dict, tmp_path: Path, to_rgb: bool
):
    """CIFAR's data set returns RGB, and ``to_rgb`` reverses the channels of any data set."""
    name = 'classifier_tnt_s_384_cifar10'
    settings = dict(mean=[1, 2, 3], std=[2, 2, 2], to_rgb=to_rgb)
    changes = {f'model.data_preprocessor.{key}': value for key, value in settings.items()}
    classifier = predictor(name, micro_arch, tmp_path, (), changes)
    pixel = np.full((40, 48, 3), (30, 20, 10), np.uint8)  # BGR
    whole = classifier.prepare(pixel)['inputs']
    order = (30, 20, 10) if to_rgb else (10, 20, 30)
    expected = [(value - mean) / 2 for value, mean in zip(order, (1, 2, 3), strict=True)]
    assert whole.shape == (1, 3, 40, 48) and whole[0, :, 0, 0].tolist() == expected


def test_truth_and_best_classes_are_written_for_each_image(tmp_path: Path):
    model = nn.Identity()
    model.num_classes = 4
    config = Config(
        dict(
            default_scope='mmpretrain',
            test_dataloader=dict(
                dataset=dict(type='CustomDataset', data_root=str(tmp_path), data_prefix='val')
            ),
        )
    )
    add_drawing(ConfigView(config), tmp_path / 'shown')
    (settings,) = config.custom_hooks
    assert settings['type'] == 'DrawPredictionsHook'
    hook = HOOKS.build(settings)
    data = SimpleNamespace(dataset=SimpleNamespace(metainfo=dict(classes=CLASSES)))
    hook.before_test(SimpleNamespace(model=model, cfg=config, test_dataloader=data))
    samples = []
    for label, name in enumerate(CLASSES[:2]):
        file = tmp_path / 'val' / name / '1.jpg'
        file.parent.mkdir(parents=True)
        Image.fromarray(photograph(260, 300)).save(file)
        sample = DataSample(metainfo=dict(img_path=str(file))).set_gt_label(label)
        samples.append(sample.set_pred_score(torch.tensor([0.7, 0.2, 0.1, 0.0])))
    hook.after_test_iter(None, 0, outputs=samples)
    shown = sorted(path.relative_to(tmp_path / 'shown') for path in tmp_path.rglob('*.png'))
    assert shown == [Path('ball/1.png'), Path('coin/1.png')], 'one name, two classes'
    right, wrong = (np.asarray(Image.open(tmp_path / 'shown' / name)) for name in shown)
    assert right.shape == (260, 300, 3)
    # Without the right edge of the text, which is as wide as the longest line.
    differs = (right != wrong).any(axis=2)[:, :60]
    assert 0 < differs.nonzero()[0].max() < 15, 'the first line alone differs'
