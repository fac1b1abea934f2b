"""Select boxes and extract regions in graphs with results of a fixed shape (ours).

Boxes are (x1, y1, x2, y2) in pixels of the input. Entries that mmdet removes get the score -1.
torchvision's operators are used because every exporter supports them.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torchvision.ops import nms, roi_align

ABSENT = -1.0
"""The score of an entry that is not a box."""


def top(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The highest values of each row, and their indices: (B, N) -> two times (B, count).

    Rows with fewer than ``count`` are filled up with minus infinity at valid indices, or, if N is a
    plain number, returned unchanged.
    """
    number = scores.shape[1]
    if isinstance(number, int):
        return scores.topk(min(count, number))
    found, places = F.pad(scores, (0, count), value=-torch.inf).topk(count)
    return found, places.minimum(torch.full_like(places, 1) * number - 1)


def pick(values: Tensor, places: Tensor) -> Tensor:
    """Gather entries of each image: (B, N, ...) at (B, M) -> (B, M, ...)."""
    images = torch.arange(values.shape[0], device=values.device)
    return values[images[:, None], places]


def clip(boxes: Tensor, sizes: Tensor) -> Tensor:
    """Clip boxes (B, N, 4) to their images, whose heights and widths are (B, 2)."""
    limits = sizes.flip(1).repeat(1, 2)[:, None].to(boxes.dtype)
    return boxes.clamp(min=0).minimum(limits)


def without_small(scores: Tensor, boxes: Tensor, side: float) -> Tensor:
    """Set scores (B, N) of boxes with a side of at most ``side`` pixels to absent."""
    if side < 0:
        return scores
    sides = boxes[..., 2:] - boxes[..., :2]
    return scores.where((sides > side).all(-1), ABSENT)


def suppress(
    boxes: Tensor, scores: Tensor, groups: Tensor, score_thr: float, iou_thr: float, count: int
) -> tuple[Tensor, Tensor]:
    """Non-maximum suppression inside each group, as mmcv's ``batched_nms``.

    Args:
        boxes: (B, N, 4), none with a side below 0.
        scores: (B, N).
        groups: An integer for each box, such as its class, (B, N).
        score_thr: Boxes must have a higher score.
        iou_thr: The overlap from which the box with the lower score is removed.
        count: Largest number of boxes kept for an image.

    Returns:
        Scores (B, count), the best first, filled up with ``ABSENT``, and their places in N.
    """
    batch = torch.arange(boxes.shape[0], device=boxes.device)[:, None]
    # Separate the groups by moving each by more than the range of the coordinates.
    groups = (groups + batch * (groups.max() + 1)).to(boxes.dtype)
    apart = boxes + (groups * (boxes.max() - boxes.min().clamp(max=0) + 1))[..., None]
    chosen = (scores > score_thr).flatten().nonzero()[:, 0]
    kept = chosen[nms(apart.flatten(0, 1)[chosen], scores.flatten()[chosen], iou_thr)]
    alive = torch.zeros_like(scores, dtype=torch.bool).flatten()
    alive = alive.index_put((kept,), alive.new_ones(()))
    return top(scores.where(alive.view_as(scores), ABSENT), count)


def region_features(extractor: nn.Module, levels: Sequence[Tensor], rois: Tensor) -> Tensor:
    """Extract regions from the levels that fit their sizes, as mmdet's ``SingleRoIExtractor``.

    Maps (B, C, h_i, w_i); rois (N, 5), each an image's index and a box -> (N, C, side, side).
    """
    layers = extractor.roi_layers
    level = extractor.map_roi_levels(rois, len(layers))
    parts = []
    for i, layer in enumerate(layers):
        settings = layer.spatial_scale, layer.sampling_ratio, layer.aligned
        inside = rois[(level == i).nonzero()[:, 0]]
        parts.append(roi_align(levels[i], inside, layer.output_size, *settings))
    # Parts are concatenated; each region looks up its own index.
    member = F.one_hot(level, len(layers))
    before = member.sum(0).cumsum(0) - member.sum(0)
    rank = (member * (member.cumsum(0) - 1 + before)).sum(1)
    return torch.cat(parts)[rank]
