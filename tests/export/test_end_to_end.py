"""In eager mode, a network computes what its host computes; other tests cover the files."""

import copy
from collections.abc import Callable
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from mmcv.ops import nms
from torch import nn
from torchvision.ops import box_iou

from ptnt_mm.deploy.pixels import prepared
from ptnt_mm.deploy.resizing import Resizing
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.export.comparison import Differences, check_results, compare, sizes_to_check
from ptnt_mm.workbench.export.supported_models import build_network

from .models import decided_model, host_config, narrow_config

KINDS = {
    'retinanet_ptnt_s_1x': 'detection',
    'rtmdet_ptnt_s_1x': 'detection',
    'mask_rcnn_ptnt_s_1x': 'masks',
    'cascade_mask_rcnn_ptnt_s_1x': 'masks',
    'semantic_fpn_ptnt_s_40k_ade20k': 'segmentation',
    'upernet_ptnt_s_160k_ade20k': 'segmentation',
    'dino_ptnt_s_1x': 'features',
}

HOST_KINDS = {
    'gfl/gfl_r50_fpn_1x_coco': 'detection',
    'atss/atss_r50_fpn_1x_coco': 'detection',
    'fcos/fcos_r50-caffe_fpn_gn-head_1x_coco': 'detection',
    'tood/tood_r50_fpn_1x_coco': 'detection',
    'tood/tood_r50_fpn_anchor-based_1x_coco': 'detection',
    'condinst/condinst_r50_fpn_ms-poly-90k_coco_instance': 'masks',
    'rtmdet/rtmdet-ins_tiny_8xb32-300e_coco': 'masks',
    'solov2/solov2_r50_fpn_1x_coco': 'features',
}
"""Configs of mmdet."""


def kind_of(network: nn.Module) -> str:
    """What its file returns; the host is needed for predictions from features."""
    return 'masks' if 'masks' in network.outputs else network.task


def photograph(height: int, width: int) -> np.ndarray:
    random = np.random.default_rng(0)
    blocks = random.integers(0, 224, (height // 16 + 1, width // 16 + 1, 3))
    return blocks.repeat(16, axis=0).repeat(16, axis=1)[:height, :width].astype(np.uint8)


def in_eager_mode(network: nn.Module):
    @torch.no_grad()
    def run(inputs: dict) -> dict:
        found = network(*map(torch.from_numpy, inputs.values()))
        return {name: x.numpy() for name, x in zip(network.outputs, found, strict=True)}

    return run


@pytest.fixture(scope='module', params=[*KINDS, *HOST_KINDS])
def network(request, micro_arch: dict) -> nn.Module:
    name, of_host = request.param, request.param in HOST_KINDS
    config = host_config(name) if of_host else narrow_config(name, micro_arch)
    chosen = build_network(decided_model(config))
    assert kind_of(chosen) == (KINDS | HOST_KINDS)[name]
    return chosen


@pytest.mark.parametrize('size', [(128, 160), (97, 131)], ids=['whole', 'odd and padded'])
def test_network_finds_what_the_host_finds(network: nn.Module, size: tuple[int, int]):
    inputs, _ = prepared(photograph(*size), Resizing(), [128, 160])
    differences = compare(in_eager_mode(network), network, inputs)
    # Some pixels of random masks are exactly at the threshold.
    assert differences.largest.pop('masks', 0.0) <= 2e-4, differences
    assert differences.within(1e-5), differences
    assert network.task != 'detection' or differences.matched >= 5


def test_images_of_a_batch_do_not_know_of_each_other(micro_arch: dict):
    network = build_network(decided_model(narrow_config('mask_rcnn_ptnt_s_1x', micro_arch)))
    run, image = in_eager_mode(network), photograph(128, 160)
    images, sizes = np.stack([image[::-1], image]), np.array([(128, 160)] * 2)
    both = run(dict(images=images, sizes=sizes))
    alone = run(dict(images=images[1:], sizes=sizes[1:]))
    for name in network.outputs:
        np.testing.assert_allclose(both[name][1], alone[name][0], atol=1e-3)


@pytest.mark.parametrize('name', [name for name, kind in HOST_KINDS.items() if kind != 'features'])
def test_a_head_of_the_host_finds_nothing_in_an_image_without_objects(name: str):
    config = host_config(name)
    config.model.test_cfg.score_thr = 0.999999
    network = build_network(decided_model(config))
    inputs, _ = prepared(np.zeros((64, 96, 3), np.uint8), Resizing(), [64, 128])
    found = in_eager_mode(network)(inputs)
    assert (found['labels'] == -1).all() and not any(
        found[name].any() for name in found if name != 'labels'
    )
    assert compare(lambda _: found, network, inputs).within(0)


@pytest.mark.parametrize('threshold', [0.3, 0.6])
def test_the_threshold_is_for_the_class_score_without_its_factor(threshold: float):
    """So boxes with lower scores than the threshold are found."""
    config = host_config('atss/atss_r50_fpn_1x_coco')
    config.model.test_cfg.update(score_thr=threshold, max_per_img=2000)
    network = build_network(decided_model(config))
    inputs, _ = prepared(photograph(128, 160), Resizing(), [128, 160])
    found = in_eager_mode(network)(inputs)
    scores = found['scores'][found['labels'] >= 0]
    assert len(scores) < 2000 and scores.min() < threshold / 2
    differences = compare(lambda _: found, network, inputs)
    assert differences.within(1e-5) and differences.matched == len(scores)


@pytest.mark.parametrize(
    ('name', 'settings'),
    [
        ('tood/tood_r50_fpn_1x_coco', dict(num_dcn=1)),
        ('fcos/fcos_r50-caffe_fpn_gn-head_1x_coco', dict(dcn_on_last_conv=True)),
    ],
)
def test_deformable_convolutions_are_left_to_the_host(name: str, settings: dict):
    config = host_config(name)
    config.model.bbox_head.update(settings)
    assert kind_of(build_network(decided_model(config))) == 'features'


def test_suppression_may_be_given_as_a_function():
    config = host_config('gfl/gfl_r50_fpn_1x_coco', 0, 1)
    config.model.test_cfg.nms.type = nms
    assert build_network(decided_model(config)).task == 'detection'


def test_sliding_windows_and_soft_suppression_are_left_to_the_host(micro_arch: dict):
    config = narrow_config('semantic_fpn_ptnt_s_40k_ade20k', micro_arch)
    config.model.test_cfg.mode = 'slide'
    assert kind_of(build_network(decided_model(config))) == 'features'
    config = narrow_config('retinanet_ptnt_s_1x', micro_arch)
    config.model.test_cfg.nms.type = 'soft_nms'
    assert kind_of(build_network(decided_model(config))) == 'features'


@pytest.mark.parametrize(
    ('name', 'part', 'method'),
    [
        ('semantic_fpn_ptnt_s_40k_ade20k', 'decode_head', 'predict'),
        ('rtmdet_ptnt_s_1x', 'bbox_head', 'predict_by_feat'),
        ('cascade_mask_rcnn_ptnt_s_1x', 'rpn_head', 'predict_by_feat'),
        ('cascade_mask_rcnn_ptnt_s_1x', 'roi_head', '_bbox_forward'),
        ('cascade_mask_rcnn_ptnt_s_1x', 'roi_head.bbox_head.2', 'forward'),
        ('mask_rcnn_ptnt_s_1x', 'roi_head', 'predict_mask'),
        ('mask_rcnn_ptnt_s_1x', 'roi_head.mask_head', 'forward'),
        ('mask_rcnn_ptnt_s_1x', 'roi_head.mask_roi_extractor', 'forward'),
        ('gfl/gfl_r50_fpn_1x_coco', 'bbox_head', '_predict_by_feat_single'),
        ('tood/tood_r50_fpn_1x_coco', 'bbox_head', 'forward'),
        ('condinst/condinst_r50_fpn_ms-poly-90k_coco_instance', 'mask_head', 'forward_single'),
        ('rtmdet/rtmdet-ins_tiny_8xb32-300e_coco', 'bbox_head', '_mask_predict_by_feat_single'),
    ],
)
def test_parts_that_predict_otherwise_are_left_to_the_host(
    name: str, part: str, method: str, micro_arch: dict
):
    """As those of Mask2Former, SABL and GRoIE do."""
    model = decided_model(host_config(name) if '/' in name else narrow_config(name, micro_arch))
    module = model.get_submodule(part)
    module.__class__ = type('Own', (type(module),), {method: lambda *_: None})
    assert kind_of(build_network(model)) == 'features'


@pytest.mark.parametrize('canvas', [None, (96, 128)])
def test_a_file_that_refuses_a_size_gets_advice_unless_its_size_is_fixed(canvas: tuple | None):
    def refuse(inputs: dict) -> dict:
        raise UserError('onnxruntime cannot run model.onnx on 96x128 pixels')

    images = [np.zeros((96, 128, 3), np.uint8)]
    with pytest.raises(UserError, match='96x128 pixels') as refusal:
        check_results(refuse, Mock(), images, (96, 128), canvas, tolerance=1e-3)
    assert ('size=(96, 128)' in str(refusal.value)) == (canvas is None)


@pytest.mark.parametrize('full', [(800, 1344), (64, 64), (48, 96), (24, 40)])
def test_sizes_that_are_compared_fit_into_the_full_one(full: tuple[int, int]):
    sizes = sizes_to_check(full)
    assert sizes[0] == full and len(sizes) == 3
    assert all(side <= whole for size in sizes for side, whole in zip(size, full, strict=True))


@pytest.mark.parametrize(
    ('differences', 'expected'),
    [
        (Differences((9, 9), dict(boxes=1e-4), matched=3), True),
        (Differences((9, 9), dict(boxes=1e-2), matched=3), False),
        (Differences((9, 9), dict(boxes=0.0), unmatched=1), False),
    ],
)
def test_a_difference_or_a_box_too_many_is_noticed(differences: Differences, expected: bool):
    assert differences.within(1e-3) is expected


@pytest.fixture(scope='module')
def detector(micro_arch: dict) -> nn.Module:
    """A network that returns all boxes of four classes that are not suppressed.

    It has no masks: a comparison predicts up to 20 times, and masks would take most of that.
    """
    config = narrow_config('demo_mask_rcnn_ptnt_ti', micro_arch)
    config.model.roi_head.update(mask_head=None, mask_roi_extractor=None)
    config.model.test_cfg.rcnn.max_per_img = 4 * config.model.test_cfg.rpn.max_per_img
    return build_network(decided_model(config))


def suppressing_from(overlap: float, detector: nn.Module) -> nn.Module:
    """A copy that removes boxes from this overlap on."""
    changed = copy.deepcopy(detector)
    changed.model.roi_head.test_cfg.nms.iou_threshold = overlap
    return changed


@pytest.mark.parametrize(
    ('lower', 'is_tie'), [(1e-5, True), (0.02, False)], ids=['by rounding', 'by a fault']
)
@pytest.mark.parametrize('file_keeps_it', [True, False])
def test_a_box_on_one_side_only_must_be_a_tie(
    detector: nn.Module, lower: float, is_tie: bool, file_keeps_it: bool
):
    """One side removes the box with the largest overlap, and the other keeps it."""
    inputs, _ = prepared(photograph(128, 192), Resizing(), [128, 192])
    found = in_eager_mode(suppressing_from(1.0, detector))(inputs)
    boxes, labels = (torch.from_numpy(found[name][0]) for name in ('boxes', 'labels'))
    largest = (box_iou(boxes, boxes) * (labels[:, None] == labels)).triu(1).max().item()
    # Float32 coordinates do not give exactly the same overlap in both computations.
    sides = [suppressing_from(largest + by, detector) for by in (1e-5, -lower)]
    file, host = sides if file_keeps_it else reversed(sides)
    differences = compare(in_eager_mode(file), host, inputs)
    assert differences.ties + differences.unmatched > 0
    assert (differences.unmatched == 0) is is_tie, differences


def lose(found: dict, place: int) -> None:
    found['labels'][0, place] = -1


def double(found: dict, place: int, by: float = 0.0) -> None:
    """Insert a copy of a box before it."""
    for name, values in found.items():
        found[name] = np.insert(values, place, values[:, place], axis=1)
    found['boxes'][0, place] += by


def nearly_double(found: dict, place: int) -> None:
    """Insert a copy that is a little farther from the host's box."""
    double(found, place, by=0.5)


def move(found: dict, place: int) -> None:
    found['boxes'][0, place] += 5


@pytest.mark.parametrize(
    ('spoil', 'place', 'most'),
    [
        (lose, 0, 1), (lose, 0, 40), (lose, 20, 40), (double, 20, 40), (nearly_double, 20, 40),
        (move, 20, 40),
    ],
)  # fmt: skip
def test_one_wrong_box_is_noticed(
    detector: nn.Module, spoil: Callable[[dict, int], None], place: int, most: int
):
    detector = copy.deepcopy(detector)
    detector.model.roi_head.test_cfg.max_per_img = most
    inputs, _ = prepared(photograph(128, 160), Resizing(), [128, 160])
    found = in_eager_mode(detector)(inputs)
    assert (found['labels'] >= 0).all() and found['labels'].size == most
    assert compare(lambda _: found, detector, inputs).within(1e-3)
    spoil(found, place)
    differences = compare(lambda _: found, detector, inputs)
    assert differences.unmatched and not differences.within(1e-3), differences
