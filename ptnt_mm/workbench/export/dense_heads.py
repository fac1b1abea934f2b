"""Boxes and scores from the maps of mmdet's dense heads, which predict at every place.

Heads that predict alike share mmdet's ``_predict_by_feat_single``, and one :class:`Coding` here.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.workbench.export.selection import ABSENT, clip, pick, top, without_small


class Coding:
    """Logits, and deltas of anchors or distances from points: most heads."""

    clips = True  # whether mmdet clips the boxes to the image

    @staticmethod
    def predict(head: nn.Module, levels: Sequence[Tensor]) -> Sequence[Sequence[Tensor]]:
        """Maps of the neck -> the head's predictions."""
        return head(levels)

    @staticmethod
    def scores(values: Tensor) -> Tensor:
        """Predicted values -> scores, of the same order."""
        return values.sigmoid()

    @staticmethod
    def boxes(head: nn.Module, level: int, priors: Tensor, values: Tensor) -> Tensor:
        """Priors (N, 2 or 4) of a level and the values (N, k) for each -> boxes (N, 4)."""
        return head.bbox_coder.decode(priors, values)


class DistributionCoding(Coding):
    """GFL: a distribution of each side's distance from the anchor's centre, in strides."""

    @staticmethod
    def boxes(head: nn.Module, level: int, priors: Tensor, values: Tensor) -> Tensor:
        """See :meth:`Coding.boxes`."""
        shares = values.unflatten(1, (4, -1)).softmax(-1)
        # Not a matrix product, as in ``head.integral``: it would become 8 bits with the layers.
        distances = (shares * head.integral.project).sum(-1) * _stride(head, level)
        return head.bbox_coder.decode(head.anchor_center(priors), distances)


class BoxCoding(Coding):
    """TOOD: the head itself computes scores, and boxes in strides."""

    clips = False

    @staticmethod
    def predict(head: nn.Module, levels: Sequence[Tensor]) -> Sequence[Sequence[Tensor]]:
        """See :meth:`Coding.predict`.

        The same as ``TOODHead.forward``, which counts the images of a batch, so that their number
        would be a constant of a graph, and samples with an operator that runtimes lack.
        """
        found = []
        for level, (map_, scale) in enumerate(zip(levels, head.scales, strict=True)):
            maps = []
            for layer in head.inter_convs:
                map_ = layer(map_)
                maps.append(map_)
            maps = torch.cat(maps, dim=1)
            mean = maps.mean((2, 3), keepdim=True)
            likely = head.tood_cls(head.cls_decomp(maps, mean)).sigmoid()
            scores = (likely * head.cls_prob_module(maps).sigmoid()).sqrt()
            values = head.tood_reg(head.reg_decomp(maps, mean))
            boxes = BoxCoding._at_places(head, level, scale, values)
            moved = sample_at_offsets(boxes, head.reg_offset_module(maps))
            inverted = (moved[:, :2] > moved[:, 2:]).any(1, keepdim=True)
            found.append((scores, boxes.where(inverted, moved)))
        return list(zip(*found, strict=True))

    @staticmethod
    def _at_places(head: nn.Module, level: int, scale: nn.Module, values: Tensor) -> Tensor:
        """Maps (B, 4, h, w) of predicted values -> maps of boxes in strides."""
        generator, size = head.prior_generator, tuple(values.shape[2:])
        anchors = generator.single_level_grid_priors(size, level, device=values.device)
        if head.anchor_type == 'anchor_free':
            centers = head.anchor_center(anchors) / _stride(head, level)
            distances = flat(scale(values.exp()), 4)
            boxes = torch.cat([centers - distances[..., :2], centers + distances[..., 2:]], dim=-1)
        else:
            anchors = anchors.repeat(values.shape[0], 1)
            boxes = head.bbox_coder.decode(anchors, flat(scale(values), 4).flatten(0, 1))
            boxes = boxes.view(values.shape[0], -1, 4) / _stride(head, level)
        return boxes.transpose(1, 2).view_as(values)

    @staticmethod
    def scores(values: Tensor) -> Tensor:
        """See :meth:`Coding.scores`."""
        return values

    @staticmethod
    def boxes(head: nn.Module, level: int, priors: Tensor, values: Tensor) -> Tensor:
        """See :meth:`Coding.boxes`."""
        return values * _stride(head, level)


CODINGS: dict[str, type[Coding]] = {
    'BaseDenseHead': Coding,
    'RPNHead': Coding,
    'CondInstBboxHead': Coding,
    'RTMDetInsHead': Coding,
    'GFLHead': DistributionCoding,
    'TOODHead': BoxCoding,
}
"""By the class whose ``_predict_by_feat_single`` a head has."""


def coding_of(head: nn.Module) -> type[Coding] | None:
    """How a dense head of mmdet predicts; None if it is not supported."""
    method = getattr(type(head), '_predict_by_feat_single', None)
    return CODINGS.get(method.__qualname__.partition('.')[0]) if method else None


class Candidates(NamedTuple):
    """Boxes before suppression; (B, N) values each, but (B, N, 4) boxes."""

    boxes: Tensor
    scores: Tensor  # ``ABSENT`` for those that mmdet removes
    labels: Tensor
    levels: Tensor
    places: Tensor  # the priors' indices, counted through all levels


def candidates(
    head: nn.Module,
    predictions: Sequence[Sequence[Tensor]],
    sizes: Tensor,
    cfg: dict,
    threshold: float = ABSENT,
) -> Candidates:
    """The best of each level.

    Args:
        head: mmdet's dense head, with a :class:`Coding`, and a score for each class.
        predictions: Maps of each level: scores (B, A * K, h, w), boxes (B, A * k, h, w) and, if
            the head has them, logits (B, A, h, w) of a factor for the score.
        sizes: Height and width of each image, (B, 2).
        cfg: The head's ``test_cfg``.
        threshold: Scores must be higher, without the factor.
    """
    coding, found, before = coding_of(head), [], 0
    for level, (cls, values, *factors) in enumerate(zip(*predictions, strict=True)):
        # Anchors (h * w * A, 4), or points (h * w, 2).
        generator, size = head.prior_generator, tuple(cls.shape[2:])
        priors = generator.single_level_grid_priors(size, level, device=cls.device)
        best, places = top(flat(cls, 1)[..., 0], cfg.nms_pre)
        scores, prior = coding.scores(best), places // head.cls_out_channels
        is_likely = scores > threshold
        for factor in factors:
            scores = scores * pick(flat(factor, 1)[..., 0], prior).sigmoid()
        width = values.shape[1] * head.cls_out_channels // cls.shape[1]
        values = pick(flat(values, width), prior).flatten(0, 1)
        boxes = coding.boxes(head, level, priors[prior].flatten(0, 1), values)
        boxes = boxes.unflatten(0, prior.shape)
        labels = places - prior * head.cls_out_channels
        scores = scores.where(is_likely, ABSENT)
        found.append((boxes, scores, labels, torch.full_like(places, level), prior + before))
        before = before + priors.shape[0]
    boxes, scores, *rest = (torch.cat(column, dim=1) for column in zip(*found, strict=True))
    boxes = clip(boxes, sizes) if coding.clips else boxes
    return Candidates(boxes, without_small(scores, boxes, cfg.get('min_bbox_size', -1)), *rest)


def sample_at_offsets(maps: Tensor, offsets: Tensor) -> Tensor:
    """Bilinear values of maps (B, C, h, w) at offsets (B, 2 * C, h, w), y and x in turn, in cells.

    The same as mmcv's ``deform_conv2d`` with a kernel of one 1; zero outside the map.
    """
    height, width = maps.shape[2:]
    y, x = offsets.unflatten(1, (-1, 2)).flatten(0, 1).unbind(1)
    y = y + torch.arange(height, device=y.device)[:, None]
    x = x + torch.arange(width, device=x.device)
    grid = torch.stack([(2 * x + 1) / width - 1, (2 * y + 1) / height - 1], dim=-1)
    found = F.grid_sample(maps.flatten(0, 1)[:, None], grid, align_corners=False)
    return found.view_as(maps)


def flat(maps: Tensor, width: int) -> Tensor:
    """(B, A * width, h, w) -> (B, h * w * A, width)."""
    return maps.permute(0, 2, 3, 1).reshape(maps.shape[0], -1, width)


def _stride(head: nn.Module, level: int) -> int:
    """In pixels; mmdet requires the same for both sides."""
    return head.prior_generator.strides[level][0]
