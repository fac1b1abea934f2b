"""Areas of polygons, for the operators of rotated boxes; their corners are (..., N, 2), x and y."""

from typing import NamedTuple

import torch
from torch import Tensor


def precise(tensor: Tensor) -> Tensor:
    """Convert to float64, or to float32 on Apple's GPUs, which have no wider type."""
    return tensor.to(torch.float32 if tensor.device.type == 'mps' else torch.float64)


def corners_of(boxes: Tensor) -> Tensor:
    """Rotated boxes (..., 5), as x, y, width, height and angle -> their corners, (..., 4, 2)."""
    centre, sides, angle = boxes[..., None, :2], boxes[..., None, 2:4], boxes[..., 4, None]
    halves = boxes.new_tensor([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    x, y = (sides * halves).unbind(-1)
    cos, sin = angle.cos(), angle.sin()
    return centre + torch.stack([x * cos - y * sin, x * sin + y * cos], -1)


def convex_hull(points: Tensor) -> Tensor:
    """Points (..., N, 2) -> the corners of their hull, (..., 2 * N, 2), some of them repeated."""
    mirror = points.new_tensor([1, -1])
    upper = _lower_chain(points * mirror) * mirror
    return torch.cat([_lower_chain(points), upper.flip(-2)], -2)


def _lower_chain(points: Tensor) -> Tensor:
    """The lower edge of a hull from left to right, (..., N, 2); its end is repeated."""
    x, y = points.unbind(-1)
    is_leftmost = x == x.amin(-1, keepdim=True)
    corner = _picked(points, y.where(is_leftmost, torch.inf).argmin(-1))
    chain = [corner]
    for _ in range(points.shape[-2] - 1):
        run, rise = (points - corner[..., None, :]).unbind(-1)
        is_right = run > 0
        slope = (rise / run.where(is_right, 1)).where(is_right, torch.inf)
        # The farthest of those in one line, so that no others have a gradient.
        is_lowest = slope == slope.amin(-1, keepdim=True)
        following = _picked(points, run.where(is_lowest, -1).argmax(-1))
        corner = torch.where(is_right.any(-1)[..., None], following, corner)
        chain.append(corner)
    return torch.stack(chain, -2)


def _picked(points: Tensor, index: Tensor) -> Tensor:
    """One of each group of points: (..., N, 2), (...) -> (..., 2)."""
    return points.take_along_dim(index[..., None, None], -2).squeeze(-2)


def signed_area(corners: Tensor) -> Tensor:
    """(..., N, 2) -> (...), negative if the corners run the other way round."""
    x, y = (corners - corners[..., :1, :]).unbind(-1)
    return (x * y.roll(-1, -1) - x.roll(-1, -1) * y).sum(-1) / 2


def shared_area(first: Tensor, second: Tensor) -> Tensor:
    """The area that two polygons share: (..., N, 2), (..., M, 2) -> (...).

    A polygon is the sum of the strips below its edges, where edges that run back count as negative.
    Two strips share what is below the lower edge, in the columns that both have. The result is
    continuous in all corners, so edges that touch or coincide are no special case.
    """
    centre = (first.mean(-2, keepdim=True) + second.mean(-2, keepdim=True)) / 2
    one = _Edges(*(value.unsqueeze(1) for value in _edges(first - centre)))
    other = _edges(second - centre)
    left = torch.maximum(one.left, other.left)
    width = (torch.minimum(one.right, other.right) - left).clamp(min=0)
    ends = [[edges.height_at(x) for edges in (one, other)] for x in (left, left + width)]
    # The lower of two lines is their mean less half their distance, which may change its sign.
    at_left, at_right = (above - below for above, below in ends)
    most = at_left.abs() + at_right.abs()
    least = torch.finfo(most.dtype).tiny
    distance = (most + (at_left + at_right).square() / most.clamp(min=least)) / 4
    lower = sum(map(sum, ends)) / 4 - distance / 2
    total = (one.direction * other.direction * width * lower).sum((0, 1))
    return total * (signed_area(first) * signed_area(second)).sign()


class _Edges(NamedTuple):
    """Sides of polygons: their ends, and the line through them."""

    left: Tensor
    right: Tensor
    direction: Tensor
    x: Tensor
    y: Tensor
    slope: Tensor

    def height_at(self, x: Tensor) -> Tensor:
        return self.y + self.slope * (x - self.x)


def _edges(corners: Tensor) -> _Edges:
    """The sides of polygons (..., N, 2), each value (N, ...): long rows are computed faster."""
    x, y = corners.movedim((-1, -2), (0, 1)).contiguous()
    next_x, next_y = x.roll(-1, 0), y.roll(-1, 0)
    run = next_x - x
    slope = (next_y - y) / run.where(run != 0, 1)
    ends = torch.minimum(x, next_x), torch.maximum(x, next_x)
    return _Edges(*ends, run.sign(), x, y, slope)
