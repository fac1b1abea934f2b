"""The gradient of roi_align on a CPU, where torchvision's takes four times as long.

The mean of bilinear samples on a grid is linear in the rows and, separately, in the columns of a
map: a roi's bins are R M C^T, where R (h, H) and C (w, W) are the shares of each row and column.
The gradient of the map M is R^T G C, over the few rows and columns in the roi, for all channels at
once.
"""

import torch
from torch import Tensor


def add_map_gradient(
    grad_output: Tensor, rois: Tensor, grad_input: Tensor, scale: float, ratio: int, aligned: bool
) -> None:
    """Add the gradient of the mean over each bin to that of the maps.

    Args:
        grad_output: (N, C, h, w).
        rois: (N, 5), the image's index and a box.
        grad_input: (B, C, H, W), changed in place.
        scale: Factor from the rois' coordinates to those of the maps.
        ratio: Rows and columns of samples in a bin; 0 for about one per pixel.
        aligned: Pixel centres are at half coordinates; else a roi has at least a pixel's sides.
    """
    # A diverged model's boxes may be NaN; then the loss is NaN too.
    corners = rois[:, 1:].nan_to_num(0, 0, 0) * scale - (0.5 if aligned else 0)
    start, sides = corners[:, :2], corners[:, 2:] - corners[:, :2]
    if not aligned:
        sides = sides.clamp(min=1)
    (height, width), (rows, columns) = grad_output.shape[2:], grad_input.shape[2:]
    by_column = _shares(start[:, 0], sides[:, 0] / width, width, ratio, columns)
    by_row = _shares(start[:, 1], sides[:, 1] / height, height, ratio, rows)
    places = zip(rois[:, 0].long().tolist(), _touched(by_row), _touched(by_column), strict=True)
    for n, (image, y, x) in enumerate(places):
        along_rows = grad_output[n] @ by_column[n, :, x]
        grad_input[image, :, y, x] += by_row[n, :, y].T @ along_rows


def _shares(start: Tensor, length: Tensor, bins: int, ratio: int, size: int) -> Tensor:
    """The share of each pixel along one side in each bin: (N,), (N,) -> (N, bins, size)."""
    shares = start.new_zeros(len(start), bins, size)
    counts = torch.full_like(length, ratio) if ratio > 0 else length.ceil().clamp(min=0)
    counts = counts[:, None, None]
    if not len(start) or not counts.any():
        return shares
    # All bins have as many samples as the largest; surplus samples have no weight.
    sample = torch.arange(int(counts.max()), device=start.device)
    bin = torch.arange(bins, device=start.device)[:, None]
    start, length = start[:, None, None], length[:, None, None]
    # In the order of the forward pass, so that points on the edge are rounded to the same side.
    at = start + bin * length + (sample + 0.5) * length / counts.clamp(min=1)
    counted = (at >= -1) & (at <= size) & (sample < counts)
    share = counted / counts.clamp(min=1)
    at = at.clamp(0, size - 1)
    low = at.long()
    to_next = (at - low) * share
    shares.scatter_add_(2, low, share - to_next)
    return shares.scatter_add_(2, (low + 1).clamp(max=size - 1), to_next)


def _touched(shares: Tensor) -> list[slice]:
    """The pixels from the first to the last with a share, for each roi."""
    touched = shares.any(1).int()
    first = touched.argmax(1)
    last = touched.shape[1] - touched.flip(1).argmax(1)
    last = torch.where(touched.any(1), last, 0)
    return [slice(*ends) for ends in zip(first.tolist(), last.tolist(), strict=True)]
