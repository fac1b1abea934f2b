"""Comparing and suppressing rotated boxes, (N, 5), and quadrilaterals, (N, 8)."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from .geometry import corners_of, precise, shared_area, signed_area

_NO_AREA = 1e-14
"""Below it, a box overlaps nothing, as in mmcv."""

_ROUNDING = 1e-9
"""A shared area below this part of the smaller box is none."""

_PAIRS = 1 << 12
"""Pairs that are computed at once, so that their numbers stay in the cache."""

_CANDIDATES = 1 << 20
"""Pairs whose upright boxes are compared at once, to limit the memory."""

_BLOCK = 256
"""Boxes that are suppressed at once."""


def box_iou_rotated(
    boxes1: Tensor, boxes2: Tensor, ious: Tensor, mode_flag: int, aligned: bool
) -> None:
    """Fill in the overlap of every pair of rotated boxes, or of the pairs (i, i).

    Args:
        boxes1: (M, 5), as x, y, width, height and the angle in radians, clockwise.
        boxes2: (N, 5).
        ious: (M * N,), or (M,) if aligned.
        mode_flag: 0 for the intersection over the union, 1 over the first box.
        aligned: Compare each box only with that of the same index; then N is M.
    """
    overlap = _overlap_of_pairs if aligned else _overlap_of_all
    ious.copy_(overlap(_rotated(boxes1), _rotated(boxes2), mode_flag).flatten())


def box_iou_quadri(
    boxes1: Tensor, boxes2: Tensor, ious: Tensor, mode_flag: int, aligned: bool
) -> None:
    """The same for quadrilaterals, (M, 8) and (N, 8), as x1, y1 to x4, y4."""
    overlap = _overlap_of_pairs if aligned else _overlap_of_all
    ious.copy_(overlap(_quadri(boxes1), _quadri(boxes2), mode_flag).flatten())


def nms_rotated(
    dets: Tensor,
    scores: Tensor,
    order: Tensor,
    dets_sorted: Tensor,
    labels: Tensor,
    iou_threshold: float,
    multi_label: bool,
) -> Tensor:
    """Keep the rotated boxes that overlap no better one by more than the threshold.

    Boxes with equal scores keep their order.

    Args:
        dets: (N, 5), or (N, 6) with labels.
        scores: (N,).
        order: Not used, because mmcv's sort does not keep the order of equal scores.
        dets_sorted: Not used.
        labels: Not used: boxes of all labels suppress each other, as in mmcv.
        iou_threshold: Rounded to float32, so that an overlap equal to it stays.
        multi_label: Not used.

    Returns:
        Indices of the boxes kept, the best first.
    """
    return _nms(_rotated(dets), scores, iou_threshold)


def nms_quadri(
    dets: Tensor,
    scores: Tensor,
    order: Tensor,
    dets_sorted: Tensor,
    iou_threshold: float,
    multi_label: bool,
) -> Tensor:
    """The same for quadrilaterals, (N, 8), or (N, 9) with labels."""
    return _nms(_quadri(dets), scores, iou_threshold)


def diff_iou_rotated_sort_vertices_forward(
    vertices: Tensor, mask: Tensor, num_valid: Tensor
) -> Tensor:
    """Order the corners of the area that two boxes share.

    Args:
        vertices: Corners of both boxes, then the points where their sides meet, (B, N, 24, 2),
            relative to the mean of the valid ones.
        mask: Which of them are valid, (B, N, 24).
        num_valid: Not used: the mask tells it.

    Returns:
        Indices of at most eight corners and of the first one again, (B, N, 9). The rest are those
        of an invalid meeting point, which mmcv sets to zero.
    """
    corners = precise(vertices)
    angle = torch.atan2(corners[..., 1], corners[..., 0]).where(mask, torch.inf)
    angle, order = angle.sort(-1)
    corners = corners.take_along_dim(order[..., None], -2)
    # A corner that lies on a side of the other box is there more than once, up to rounding: of
    # more than eight corners, those count that are farthest from the one before.
    step = pad(corners.diff(dim=-2).abs().amax(-1), (1, 0), value=torch.inf)
    farthest = step.where(angle.isfinite(), -1).topk(8).indices
    is_kept = torch.zeros_like(mask).scatter(-1, farthest, True) & angle.isfinite()
    count = is_kept.sum(-1, keepdim=True)
    padding = 8 + mask[..., 8:].int().argmin(-1, keepdim=True)
    place = (is_kept.cumsum(-1) - 1).where(is_kept, 9)  # which is cut off
    result = padding.expand(*padding.shape[:-1], 10).scatter(-1, place, order)
    result = result.scatter(-1, count, result[..., :1])[..., :9]
    return result.where(count > 2, padding).int()


class _Boxes(NamedTuple):
    """Corners, (N, 4, 2), and areas, (N,)."""

    corners: Tensor
    area: Tensor

    def at(self, index: Tensor) -> '_Boxes':
        return _Boxes(self.corners[index], self.area[index])


def _rotated(boxes: Tensor) -> _Boxes:
    """(N, 5) -> boxes; one with a negative side has no area, as in mmcv."""
    boxes = precise(boxes)
    return _Boxes(corners_of(boxes), boxes[:, 2] * boxes[:, 3])


def _quadri(boxes: Tensor) -> _Boxes:
    """(N, 8) -> boxes."""
    corners = precise(boxes[:, :8]).unflatten(1, (4, 2))
    return _Boxes(corners, signed_area(corners).abs())


def _overlap_of_all(first: _Boxes, second: _Boxes, mode: int, least: float = 0) -> Tensor:
    """Overlaps of M and N boxes, (M, N); 0 where they cannot be above the least one."""
    result = first.area.new_zeros(len(first.area), len(second.area))
    low, high = second.corners.amin(1), second.corners.amax(1)
    index = torch.arange(len(result), device=result.device)
    for rows in index.split(max(_CANDIDATES // max(len(low), 1), 1)):
        corners, area = first.at(rows[:, None])
        sides = torch.minimum(corners.amax(-2), high) - torch.maximum(corners.amin(-2), low)
        most = torch.minimum(sides.clamp(min=0).prod(-1), torch.minimum(area, second.area))
        i, j = (most > least * _whole(area, second.area, most, mode)).nonzero(as_tuple=True)
        result[rows[i], j] = _overlap_of_pairs(first.at(rows[i]), second.at(j), mode)
    return result


def _overlap_of_pairs(first: _Boxes, second: _Boxes, mode: int) -> Tensor:
    """Overlaps of P boxes with as many others, (P,)."""
    pairs = zip(first.corners.split(_PAIRS), second.corners.split(_PAIRS), strict=True)
    shared = torch.cat([shared_area(*corners) for corners in pairs])
    smaller = torch.minimum(first.area, second.area)
    shared = torch.minimum(shared, smaller)  # sides that cross would give any value
    is_any = (smaller > _NO_AREA) & (shared > _ROUNDING * smaller)
    return (shared / _whole(first.area, second.area, shared, mode)).where(is_any, 0)


def _whole(area1: Tensor, area2: Tensor, shared: Tensor, mode: int) -> Tensor:
    """The area that the shared one is divided by."""
    return area1 + area2 - shared if mode == 0 else area1


def _nms(boxes: _Boxes, scores: Tensor, threshold: float) -> Tensor:
    """Indices of the boxes kept, the best first; see `nms_rotated`."""
    threshold = float(np.float32(threshold))

    def suppresses(better: Tensor, worse: Tensor) -> Tensor:
        overlap = _overlap_of_all(boxes.at(better), boxes.at(worse), 0, threshold)
        return overlap.float() > threshold  # Rounded, so that a half is not more than a half.

    left, kept = scores.sort(descending=True, stable=True).indices, []
    while len(left):
        block, left = left[:_BLOCK], left[_BLOCK:]
        block = block[_greedy(suppresses(block, block))]
        left = left[~suppresses(block, left).any(0)]
        kept.append(block)
    return torch.cat(kept)


def _greedy(suppresses: Tensor) -> Tensor:
    """The boxes that stay if each one suppresses those after it: (N, N) -> (N,)."""
    rows = suppresses.numpy(force=True)
    stays = np.ones(len(rows), dtype=bool)
    for index, row in enumerate(rows):
        if stays[index]:
            stays[index + 1 :] &= ~row[index + 1 :]
    return torch.from_numpy(stays).to(suppresses.device)
