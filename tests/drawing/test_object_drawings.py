"""Boxes, masks and names, in sizes that suit the image."""

import numpy as np
import pytest
import torch
from mmdet.structures import DetDataSample
from mmdet.structures.mask import BitmapMasks
from mmengine.config import Config
from mmengine.registry import VISUALIZERS
from mmengine.structures import InstanceData
from repository import ROOT

from ptnt_mm.utils.colours import PALETTE

from .conftest import Draw

GREY = 128
RED, BLUE = (200, 0, 0), (0, 0, 200)
META = dict(classes=('ball', 'cup'), palette=[RED, BLUE])


def where(picture: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    return (picture == colour).all(axis=-1)


@pytest.mark.parametrize('side', [100, 640, 2000])
def test_lines_and_names_grow_with_the_image(side: int, draw_objects: Draw):
    box = torch.tensor([[0.2, 0.4, 0.8, 0.9]]) * side
    picture = draw_objects(
        (side, side), META, bboxes=box, labels=torch.tensor([0]), scores=torch.tensor([0.5])
    )
    line = where(picture, RED)[int(0.7 * side), : side // 2].sum() / side
    assert 1 / 400 <= line <= 1 / 100
    # The name stands above the box.
    name = where(picture, RED)[: int(0.39 * side), int(0.2 * side)].sum() / side
    assert 1 / 50 <= name <= 1 / 8


def test_a_small_object_has_a_smaller_name(draw_objects: Draw):
    boxes, labels = (
        torch.tensor([[100.0, 300, 500, 700], [800, 700, 815, 715]]),
        torch.tensor([0, 1]),
    )
    picture = draw_objects((1000, 1000), META, bboxes=boxes, labels=labels)
    heights = [where(picture, colour)[:, x].sum() for colour, x in ((RED, 105), (BLUE, 817))]
    assert heights[0] > 1.5 * heights[1] > 0


@pytest.mark.parametrize('box', [(0, 0, 50, 40), (60, 70, 200, 300), (-9, -9, 5, 5), (0, 0, 0, 0)])
def test_names_stay_inside(box: tuple, draw_objects: Draw):
    picture = draw_objects((80, 120), META, bboxes=torch.tensor([box]), labels=torch.tensor([1]))
    assert (picture.min(axis=-1) > 180).sum() > 9, 'white letters on blue'


def test_the_best_is_on_top(draw_objects: Draw):
    boxes, labels = torch.tensor([[10.0, 30, 90, 90]] * 2), torch.tensor([0, 1])
    for scores, colour in (((0.9, 0.4), RED), ((0.4, 0.9), BLUE)):
        picture = draw_objects(
            (100, 100), META, bboxes=boxes, labels=labels, scores=torch.tensor(scores)
        )
        assert tuple(picture[60, 10]) == colour


@pytest.mark.parametrize('of_truth', [True, False])
def test_masks_are_tinted_with_or_without_boxes(of_truth: bool, draw_objects: Draw):
    mask = np.zeros((1, 60, 80), np.uint8)
    mask[0, 20:50, 10:40] = 1
    masks = BitmapMasks(mask, 60, 80) if of_truth else torch.tensor(mask, dtype=torch.bool)
    for boxes in ({}, dict(bboxes=torch.zeros(1, 4))):  # SOLO has boxes of zeros
        picture = draw_objects((60, 80), META, masks=masks, labels=torch.tensor([0]), **boxes)
        assert picture[40, 25, 0] > GREY > picture[40, 25, 2]
        assert tuple(picture[45, 10]) == RED, 'its outline'
        assert (picture[55:] == GREY).all() and (picture[:, 60:] == GREY).all()
        assert where(picture, RED)[10:18, 12].any(), 'its name above'


def test_names_of_an_open_vocabulary_and_classes_without_colours(draw_objects: Draw):
    for meta, more in (
        (META, dict(label_names=['a long name'])),
        (dict(classes=None, palette='random'), {}),
        (dict(classes=('x',)), {}),
    ):
        picture = draw_objects(
            (90, 90),
            meta,
            bboxes=torch.tensor([[9.0, 30, 80, 80]]),
            labels=torch.tensor([1]),
            **more,
        )
        assert (picture != GREY).any()


def test_the_palette_of_another_data_set_is_not_used(draw_objects: Draw):
    """A config that changes the classes of CocoDataset inherits the 80 colours of COCO."""
    meta = dict(classes=('a', 'b'), palette=[(1, 2, 3)] * 80)
    picture = draw_objects(
        (90, 90), meta, bboxes=torch.tensor([[9.0, 30, 80, 80]]), labels=torch.tensor([0])
    )
    assert where(picture, PALETTE[0]).any() and not where(picture, (1, 2, 3)).any()


def test_the_visualizer_of_projects_draws_on_a_copy():
    runtime = Config.fromfile(ROOT / 'configs/_base_/project/runtime_mmdet.py')
    visualizer = VISUALIZERS.build(dict(runtime.visualizer, vis_backends=[]))
    visualizer.dataset_meta = META
    image = np.full((90, 90, 3), GREY, np.uint8)
    one, other = (
        InstanceData(
            bboxes=torch.tensor([[9.0 + 40 * i, 30, 40 + 40 * i, 80]]), labels=torch.tensor([i])
        )
        for i in (0, 1)
    )
    other.scores = torch.tensor([0.9])
    visualizer.add_datasample('x', image, DetDataSample(gt_instances=one, pred_instances=other))
    truth, found = np.split(visualizer.get_image(), 2, axis=1)
    assert where(truth, RED).any() and where(found, BLUE).any() and not where(found, RED).any()
