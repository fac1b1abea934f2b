"""Merging the views of one image, with masks, and the PEG of DETR's encoder."""

import pytest
import torch
from mmdet.structures import DetDataSample
from mmengine.config import ConfigDict
from mmengine.registry import MODELS, DefaultScope
from mmengine.structures import InstanceData
from torch import Tensor, nn

from ptnt_mm import get_config

from . import golden

HEIGHT, WIDTH = 20, 30


@pytest.fixture
def merger() -> nn.Module:
    module = nn.Identity()
    module.test_step = None  # only merging is tested
    settings = ConfigDict(nms=dict(type='nms', iou_threshold=0.5), max_per_img=2)
    model = get_config('demo_mask_rcnn_ptnt_ti').tta_model
    return MODELS.build(dict(model, module=module, tta_cfg=settings))


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


def merge(merger: nn.Module, *views: DetDataSample) -> tuple[Tensor, Tensor, Tensor]:
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
@pytest.mark.parametrize('has_boxes', [True, False], ids=['boxes', 'as SOLO'])
def test_a_mask_comes_back_from_the_mirror_with_its_box(merger, direction, mirrored, has_boxes):
    box = [2.0, 3.0, 10.0, 9.0]
    views = view([box], [0.6], None), view([mirrored], [0.9], direction)
    for sample in views:
        sample.pred_instances.bboxes *= has_boxes
    boxes, scores, masks = merge(merger, *views)
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


HW = (4, 6)


@pytest.fixture(scope='module')
def detector() -> nn.Module:
    settings = get_config('detr_r50_peg_50e').model
    settings.backbone.update(depth=18, init_cfg=None)
    settings.neck.in_channels = [512]
    with DefaultScope.overwrite_default_scope('mmdet'):
        model = MODELS.build(settings).eval()
    golden.filled(model.peg)
    return model


@pytest.fixture
def peg(detector: nn.Module) -> nn.Module:
    return detector.peg


def padded(rows: int, columns: int) -> torch.Tensor:
    """A mask (1, 24) of a map whose image fills the given rows and columns."""
    mask = torch.ones(1, *HW, dtype=torch.bool)
    mask[:, :rows, :columns] = False
    return mask.flatten(1)


def test_masked_places_keep_their_value(peg):
    tokens, mask = torch.randn(2, 24, 256), torch.cat([padded(3, 5), padded(4, 6)])
    found = peg(tokens, HW, mask)
    assert torch.equal(found[mask], tokens[mask])
    changed = (found - tokens).abs().amax(dim=2) > 0
    assert changed[~mask].all()


def test_it_adds_a_convolution_with_norm_and_relu(peg):
    tokens = torch.randn(2, 24, 256)
    on_map = tokens.mT.unflatten(2, HW)
    expected = on_map + peg.norm(peg.conv(on_map)).relu()
    assert peg.conv.bias is None and peg.conv.groups == 256
    torch.testing.assert_close(peg(tokens, HW, None), expected.flatten(2).mT)


def test_an_image_does_not_see_how_far_its_batch_is_padded(peg):
    """Alone, or padded with anything to the size of a larger image."""
    image = torch.randn(1, 256, 3, 5)
    alone = peg(image.flatten(2).mT, (3, 5), None)
    batch = torch.randn(1, 256, *HW)
    batch[:, :, :3, :5] = image
    mask = padded(3, 5)
    found = peg(batch.flatten(2).mT, HW, mask)
    torch.testing.assert_close(found[~mask], alone[0])


def test_the_detector_gives_it_the_grid_and_the_mask(detector):
    seen = {}
    detector.peg.register_forward_hook(lambda _, args, out: seen.update(hw=args[1], mask=args[2]))
    samples = [
        DetDataSample(metainfo=dict(img_shape=shape, batch_input_shape=(96, 128)))
        for shape in ((64, 96), (96, 128))
    ]
    inputs, _ = detector.pre_transformer((torch.randn(2, 256, 3, 4),), samples)
    memory = detector.forward_encoder(**inputs)['memory']
    assert memory.shape == (2, 12, 256)
    assert seen['hw'] == (3, 4)
    assert seen['mask'].sum(dim=1).tolist() == [6, 0]
