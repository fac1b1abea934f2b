"""Points in the bins of a roi, and the values of maps there."""

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag


def positions(start: Tensor, length: Tensor, bins: int, samples: int) -> Tensor:
    """Spread samples evenly in the bins of each roi: (n,) and (n,) -> (n, bins, samples)."""
    bin, sample = (torch.arange(count, device=start.device) for count in (bins, samples))
    start, length = start[:, None, None], length[:, None, None]
    # In mmcv's order, so that a point on the edge is rounded to the same side.
    return start + bin[:, None] * length + (sample + 0.5) * length / samples


def summed_at(maps: Tensor, image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Sum maps over groups of points: (B, C, H, W) -> (P, C).

    Up to a pixel outside, a point has the value at the border; farther away, 0.

    Args:
        maps: (B, C, H, W).
        image: The index of each group's image, (P,).
        y: Rows of the points, (P, S).
        x: Columns of the points, (P, S).
    """
    height, width = maps.shape[2:]
    is_inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    y, x = y.where(is_inside, 0).clamp(0, height - 1), x.where(is_inside, 0).clamp(0, width - 1)
    top, left = y.long(), x.long()
    bottom, right = (top + 1).clamp(max=height - 1), (left + 1).clamp(max=width - 1)
    down, along = y - top, x - left
    pixels = torch.stack([top, top, bottom, bottom], -1) * width
    pixels += torch.stack([left, right, left, right], -1) + image[:, None, None] * height * width
    shares = torch.stack([1 - down, 1 - down, down, down], -1)
    shares = shares * torch.stack([1 - along, along, 1 - along, along], -1) * is_inside[..., None]
    rows = maps.permute(0, 2, 3, 1).flatten(0, 2)
    return embedding_bag(
        pixels.flatten(1), rows, mode='sum', per_sample_weights=shares.flatten(1).to(rows)
    )
