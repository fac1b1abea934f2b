"""Merging the views of one image, with masks."""

import pytest
import torch
from mmdet.structures import DetDataSample
from mmengine.config import ConfigDict
from mmengine.structures import InstanceData
from torch import Tensor, nn

from ptnt_mm.models.instance_tta import InstanceTTAModel

HEIGHT, WIDTH = 20, 30


@pytest.fixture
def merger() -> InstanceTTAModel:
    module = nn.Identity()
    module.test_step = None  # only merging is tested
    settings = ConfigDict(nms=dict(type='nms', iou_threshold=0.5), max_per_img=2)
    return InstanceTTAModel(module=module, tta_cfg=settings)


def view(boxes: list[list[float]], scores: list[float], direction: str | None) -> DetDataSample:
    """Predictions for the image, or for its mirror image: masks fill their boxes."""
    masks = torch.zeros(len(boxes), HEIGHT, WIDTH, dtype=torch.bool)
    for mask, (left, top, right, bottom) in zip(masks, boxes, strict=True):
        mask[int(top) : int(bottom), int(left) : int(right)] = True
    meta = dict(ori_shape=(HEIGHT, WIDTH), flip=direction is not None, flip_direction=direction)
    sample = DetDataSample(metainfo=meta)
    sample.pred_instances = InstanceData(
        bboxes=torch.tensor(boxes).view(-1, 4),
        scores=torch.tensor(scores),
        labels=torch.zeros(len(boxes), dtype=torch.long),
        masks=masks,
    )
    return sample


def merge(merger: InstanceTTAModel, *views: DetDataSample) -> tuple[Tensor, Tensor, Tensor]:
    (sample,) = merger.merge_preds([list(views)])
    found = sample.pred_instances
    return found.bboxes, found.scores, found.masks


@pytest.mark.parametrize(
    ('direction', 'mirrored'),
    [
        ('horizontal', [20.0, 3.0, 28.0, 9.0]),
        ('vertical', [2.0, 11.0, 10.0, 17.0]),
        ('diagonal', [20.0, 11.0, 28.0, 17.0]),
    ],
)
def test_a_mask_comes_back_from_the_mirror_with_its_box(merger, direction, mirrored):
    box = [2.0, 3.0, 10.0, 9.0]
    boxes, scores, masks = merge(
        merger, view([box], [0.6], None), view([mirrored], [0.9], direction)
    )
    assert boxes.tolist() == [box] and scores.tolist() == pytest.approx([0.9])
    assert masks.shape == (1, HEIGHT, WIDTH)
    assert masks[0, 3:9, 2:10].all() and masks.sum() == 6 * 8


def test_the_best_are_kept_each_with_its_own_mask(merger):
    first, second, third = [0.0, 0.0, 4, 4], [10.0, 0.0, 14, 5], [20.0, 0.0, 24, 6]
    boxes, scores, masks = merge(
        merger, view([first, second], [0.2, 0.7], None), view([third], [0.9], None)
    )
    assert boxes.tolist() == [third, second] and scores.tolist() == pytest.approx([0.9, 0.7])
    assert masks.flatten(1).sum(1).tolist() == [24, 20]


def test_nothing_found_is_no_error(merger):
    boxes, _, masks = merge(merger, view([], [], None), view([], [], 'horizontal'))
    assert boxes.shape == (0, 4) and masks.shape == (0, HEIGHT, WIDTH)
