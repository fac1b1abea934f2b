"""Sets of nine points, (N, 18), which a detector learns, and quadrilaterals, (N, 8)."""

import math

import torch
from torch import Tensor

from .geometry import convex_hull, precise, shared_area, signed_area

_PAIRS = 1 << 14
"""Sets or points and polygons that are compared at once, to limit the memory."""

_EQUAL = 1e-9
"""Rectangles whose areas differ by this share are equal."""


def convex_iou(pointsets: Tensor, polygons: Tensor, ious: Tensor) -> None:
    """Fill in the IoU of the hull of each set, (N, 18), with each polygon, (K, 8): (N, K)."""
    polygons = _points(polygons)
    area = signed_area(polygons).abs()
    rows = _rows(polygons)
    for points, into in zip(_points(pointsets).split(rows), ious.split(rows), strict=True):
        hulls = convex_hull(points)[:, None]
        shared = shared_area(hulls, polygons)
        into.copy_(shared / (signed_area(hulls).abs() + area - shared))


def convex_giou(pointsets: Tensor, polygons: Tensor, output: Tensor) -> None:
    """The GIoU of each hull with its polygon: (N, 18), (N, 8) -> output (N, 19).

    The first 18 are the gradient by the points, the last one is the GIoU.
    """
    polygons = _points(polygons)
    with torch.enable_grad():
        points = _points(pointsets).requires_grad_()
        hulls = convex_hull(points)
        shared = shared_area(hulls, polygons)
        union = signed_area(hulls).abs() + signed_area(polygons).abs() - shared
        around = signed_area(convex_hull(torch.cat([points, polygons], 1))).abs()
        giou = shared / union - 1 + union / around
        (gradient,) = torch.autograd.grad(giou.sum(), points)
    output.copy_(torch.cat([gradient.flatten(1), giou.detach()[:, None]], 1))


def min_area_polygons(pointsets: Tensor, polygons: Tensor) -> None:
    """The smallest rectangle around each set, which has a side along an edge of its hull.

    Args:
        pointsets: (N, 18).
        polygons: Receives the corners, (N, 8).
    """
    points = _points(pointsets)
    # In mmcv's order, from the lowest point on, and the first of equal ones.
    hulls = convex_hull(points.flip(-1)).flip(-1, -2).roll(1, -2)
    x, y = (hulls.roll(-1, -2) - hulls).unbind(-1)
    angle = torch.atan2(y, x).remainder(math.pi / 2)
    turned = points[:, None] @ _rotation(angle)  # (N, 18 sides, 9 points, 2)
    low, high = turned.amin(-2), turned.amax(-2)
    area = (high - low).prod(-1)
    is_smallest = area <= area.amin(1, keepdim=True) * (1 + _EQUAL)
    best = is_smallest.int().argmax(1, keepdim=True)
    low, high = (ends.take_along_dim(best[..., None], 1).squeeze(1) for ends in (low, high))
    x = torch.stack([high[:, 0], low[:, 0], low[:, 0], high[:, 0]], 1)
    y = torch.stack([low[:, 1], low[:, 1], high[:, 1], high[:, 1]], 1)
    back = _rotation(-angle.take_along_dim(best, 1)).squeeze(1)
    polygons.copy_((torch.stack([x, y], -1) @ back).flatten(1))


def points_in_polygons_forward(points: Tensor, polygons: Tensor, output: Tensor) -> None:
    """Whether each point, (B, 2), lies in each polygon, (M, 8): output (B, M), 1 or 0.

    Counts the sides to the right of a point. One that lies on a side ends the count, as in mmcv.
    """
    rows, corners = _rows(polygons), _points(polygons)
    for part, into in zip(precise(points).split(rows), output.split(rows), strict=True):
        into.copy_(_is_inside(part[:, None, None], corners))


def _is_inside(points: Tensor, corners: Tensor) -> Tensor:
    """Points (B, 1, 1, 2) and corners (M, 4, 2) -> 1 or 0, (B, M)."""
    x, y = points.unbind(-1)
    start_x, start_y = corners.unbind(-1)
    end_x, end_y = start_x.roll(1, -1), start_y.roll(1, -1)
    crosses = (start_y < y) != (end_y < y)
    rise = end_y - start_y
    at = start_x + (y - start_y) * (end_x - start_x) / rise.where(rise != 0, 1)
    is_corner = ((start_x == x) & (start_y == y)) | ((end_x == x) & (end_y == y))
    ends = is_corner | (crosses & (at == x))
    counted = crosses & (at > x) & (ends.cumsum(-1) == 0)
    return counted.sum(-1).remainder(2)


def _rows(polygons: Tensor) -> int:
    """How many are compared with all polygons at once."""
    return max(_PAIRS // max(len(polygons), 1), 1)


def _points(rows: Tensor) -> Tensor:
    """(N, 2 * P) -> (N, P, 2), in float64."""
    return precise(rows.detach()).unflatten(1, (-1, 2))


def _rotation(angle: Tensor) -> Tensor:
    """Matrices that turn points, as rows, back by an angle: (...) -> (..., 2, 2)."""
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
