"""The sampling operators of mmcv in plain Python, a point at a time, in float64.

Re-derived from the formulas in its C++ and CUDA sources; only the edge of a map needs care. Between
row 0 and row -1 a map fades to 0, and so beyond its last row. A point exactly on row -1, or on the
row after the last plus one, counts as outside for deformable convolution and attention: neither
value nor slope. For roi_align it counts as inside, and the border's values continue up to there.
"""

from itertools import product
from math import ceil, cos, floor, sin

import numpy as np
import torch


def normal(*shape: int) -> torch.Tensor:
    """Random numbers in double precision."""
    return torch.randn(shape, dtype=torch.float64)


def pixel(image: np.ndarray, row: int, column: int) -> float:
    """The value of a pixel, 0 outside."""
    height, width = image.shape
    return image[row, column] if 0 <= row < height and 0 <= column < width else 0.0


def is_outside(image: np.ndarray, y: float, x: float) -> bool:
    """Whether a point touches no pixel of an image (H, W)."""
    height, width = image.shape
    return y <= -1 or y >= height or x <= -1 or x >= width


def corners(image: np.ndarray, y: float, x: float) -> list[tuple[int, int, float, float]]:
    """The four pixels around a point: row, column, and the weights of both."""
    if is_outside(image, y, x):
        return []
    top, left = floor(y), floor(x)
    rows = ((top, top + 1 - y), (top + 1, y - top))
    columns = ((left, left + 1 - x), (left + 1, x - left))
    return [(r, c, by_row, by_column) for (r, by_row), (c, by_column) in product(rows, columns)]


def value(image: np.ndarray, y: float, x: float) -> float:
    """Interpolate an image (H, W) at a point."""
    return sum(pixel(image, r, c) * v * w for r, c, v, w in corners(image, y, x))


def slopes(image: np.ndarray, y: float, x: float) -> tuple[float, float]:
    """The derivatives of the value by y and by x."""
    down = right = 0.0
    for row, column, by_row, by_column in corners(image, y, x):
        down += pixel(image, row, column) * by_column * (1 if row > y else -1)
        right += pixel(image, row, column) * by_row * (1 if column > x else -1)
    return down, right


def spread(gradient: np.ndarray, y: float, x: float, amount: float) -> None:
    """Add the contribution of a point to the gradient of an image (H, W)."""
    for row, column, by_row, by_column in corners(gradient, y, x):
        if 0 <= row < gradient.shape[0] and 0 <= column < gradient.shape[1]:
            gradient[row, column] += amount * by_row * by_column


def deform_conv(maps, offset, mask, weight, grad_output, stride, padding, dilation, groups):
    """The output and the gradients of maps, offset, mask and weight; float64 arrays.

    Args:
        maps: (B, C, H, W).
        offset: (B, 2 * deformable groups * kH * kW, h, w).
        mask: (B, deformable groups * kH * kW, h, w); ones without modulation.
        weight: (D, C / groups, kH, kW).
        grad_output: (B, D, h, w).
        stride: Of rows and columns, as padding and dilation.
        padding: See stride.
        dilation: See stride.
        groups: Of the channels that see each other.
    """
    kernel, per_group = weight.shape[2:], weight.shape[1]
    deform_groups = mask.shape[1] // (kernel[0] * kernel[1])
    out_per_group = len(weight) // groups
    output = np.zeros_like(grad_output)
    found = into_maps, into_offset, into_mask, into_weight = [
        np.zeros_like(array) for array in (maps, offset, mask, weight)
    ]
    places = product(range(len(maps)), range(maps.shape[1]), *map(range, kernel))
    for (b, c, i, j), (h, w) in product(places, list(np.ndindex(*output.shape[2:]))):
        tap = (c // (maps.shape[1] // deform_groups) * kernel[0] + i) * kernel[1] + j
        y = h * stride[0] - padding[0] + i * dilation[0] + offset[b, 2 * tap, h, w]
        x = w * stride[1] - padding[1] + j * dilation[1] + offset[b, 2 * tap + 1, h, w]
        group, channel = divmod(c, per_group)
        outputs = slice(group * out_per_group, (group + 1) * out_per_group)
        weights, strength = weight[outputs, channel, i, j], mask[b, tap, h, w]
        sampled, (down, right) = value(maps[b, c], y, x), slopes(maps[b, c], y, x)
        output[b, outputs, h, w] += weights * sampled * strength
        from_outputs = grad_output[b, outputs, h, w]
        into_weight[outputs, channel, i, j] += from_outputs * sampled * strength
        reaching = float(weights @ from_outputs)
        into_mask[b, tap, h, w] += reaching * sampled
        into_offset[b, 2 * tap, h, w] += reaching * strength * down
        into_offset[b, 2 * tap + 1, h, w] += reaching * strength * right
        spread(into_maps[b, c], y, x, reaching * strength)
    return [output, *found]


def attention(maps, locations, weights, grad_output):
    """Deformable attention to one level: the output and the gradients of the first three.

    Args:
        maps: (B, H, W, heads, C).
        locations: (B, Q, heads, P, 2), x and y from 0 to 1.
        weights: (B, Q, heads, P).
        grad_output: (B, Q, heads, C).
    """
    output = np.zeros_like(grad_output)
    found = into_maps, into_locations, into_weights = [
        np.zeros_like(array) for array in (maps, locations, weights)
    ]
    height, width = maps.shape[1:3]
    for b, q, m, p in np.ndindex(*weights.shape):
        x, y = locations[b, q, m, p] * [width, height] - 0.5
        for c in range(maps.shape[4]):
            image, reaching = maps[b, :, :, m, c], grad_output[b, q, m, c]
            sampled, (down, right) = value(image, y, x), slopes(image, y, x)
            output[b, q, m, c] += weights[b, q, m, p] * sampled
            into_weights[b, q, m, p] += reaching * sampled
            reaching *= weights[b, q, m, p]
            into_locations[b, q, m, p] += reaching * np.array([right * width, down * height])
            spread(into_maps[b, :, :, m, c], y, x, reaching)
    return [output, *found]


def roi_align(maps, rois, grad_output, scale, ratio, mode, aligned):
    """The output and the gradient of the maps.

    Args:
        maps: (B, C, H, W).
        rois: (N, 5).
        grad_output: (N, C, h, w).
        scale: Factor from the rois' coordinates to those of the maps.
        ratio: Rows and columns of samples in a bin, above 0.
        mode: 'avg' or 'max'.
        aligned: Whether pixel centres are at half coordinates.
    """
    output, into_maps = np.zeros_like(grad_output), np.zeros_like(maps)
    height, width = maps.shape[2:]
    for n, c, h, w in np.ndindex(*output.shape):
        x1, y1, x2, y2 = rois[n, 1:] * scale - (0.5 if aligned else 0)
        least = 0 if aligned else 1
        tall, wide = max(y2 - y1, least) / output.shape[2], max(x2 - x1, least) / output.shape[3]
        image = maps[int(rois[n, 0]), c]
        samples = []
        for i, j in np.ndindex(ratio, ratio):
            y, x = (
                y1 + h * tall + (i + 0.5) * tall / ratio,
                x1 + w * wide + (j + 0.5) * wide / ratio,
            )
            if not (-1 <= y <= height and -1 <= x <= width):
                samples.append((0.0, y, x, None))
                continue
            inside = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
            samples.append((value(image, *inside), y, x, inside))
        if mode == 'max':
            samples = [max(samples, key=lambda sample: sample[0])]
        output[n, c, h, w] = np.mean([sample[0] for sample in samples])
        for _, y, _, inside in samples:
            # mmcv marks a bin without a maximum with the row -1, and takes one there for none.
            if inside and not (mode == 'max' and y == -1):
                amount = grad_output[n, c, h, w] / len(samples)
                spread(into_maps[int(rois[n, 0]), c], *inside, amount)
    return [output, into_maps]


def _within(image: np.ndarray, y: float, x: float) -> tuple[float, float] | None:
    """A point of roi_align, moved to the border if it is up to a pixel outside; None beyond."""
    height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return None
    return min(max(y, 0), height - 1), min(max(x, 0), width - 1)


def roi_align_rotated(maps, rois, grad_output, scale, ratio, aligned, clockwise):
    """The output and the gradient of the maps.

    Args:
        maps: (B, C, H, W).
        rois: (N, 6), with x, y, width, height and angle.
        grad_output: (N, C, h, w).
        scale: Factor from the rois' coordinates to those of the maps.
        ratio: Rows and columns of samples in a bin; 0 for about one per pixel.
        aligned: Whether pixel centres are at half coordinates.
        clockwise: Whether angles are.
    """
    output, into_maps = np.zeros_like(grad_output), np.zeros_like(maps)
    for n, c, h, w in np.ndindex(*output.shape):
        centre_x, centre_y = rois[n, 1:3] * scale - (0.5 if aligned else 0)
        wide, tall = (max(side * scale, 0 if aligned else 1) for side in rois[n, 3:5])
        angle = -rois[n, 5] if clockwise else rois[n, 5]
        rows, columns = output.shape[2:]
        counts = [ratio or ceil(tall / rows), ratio or ceil(wide / columns)]
        image, gradient = (each[int(rois[n, 0]), c] for each in (maps, into_maps))
        for i, j in np.ndindex(*counts):
            down = (h + (i + 0.5) / counts[0]) * tall / rows - tall / 2
            along = (w + (j + 0.5) / counts[1]) * wide / columns - wide / 2
            y = down * cos(angle) - along * sin(angle) + centre_y
            x = down * sin(angle) + along * cos(angle) + centre_x
            if inside := _within(image, y, x):
                output[n, c, h, w] += value(image, *inside) / np.prod(counts)
                spread(gradient, *inside, grad_output[n, c, h, w] / np.prod(counts))
    return [output, into_maps]


def feature_align(maps, boxes, grad_output, scale, points):
    """Each pixel plus the maps at its box's centre and, of five points, at its corners.

    Args:
        maps: (B, C, H, W).
        boxes: (B, H, W, 5), as y, x, width, height and angle.
        grad_output: (B, C, H, W).
        scale: Factor from the boxes' coordinates to those of the maps.
        points: 1 or 5.
    """
    output, into_maps = maps.copy(), grad_output.copy()
    for b, c, h, w in np.ndindex(*maps.shape):
        y, x, wide, tall = boxes[b, h, w, :4] * scale
        corners = box_corners(x, y, wide, tall, boxes[b, h, w, 4])
        for at_x, at_y in [(x, y), *corners][:points]:
            if inside := _within(maps[b, c], at_y, at_x):
                output[b, c, h, w] += value(maps[b, c], *inside)
                spread(into_maps[b, c], *inside, grad_output[b, c, h, w])
    return [output, into_maps]


def box_corners(x, y, width, height, angle):
    """The corners of a box that is turned clockwise in an image."""
    halves = [(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)]
    sides = [(a * width, b * height) for a, b in halves]
    return [
        (x + a * cos(angle) - b * sin(angle), y + a * sin(angle) + b * cos(angle)) for a, b in sides
    ]


def nms(shapes, scores, threshold, overlap):
    """The indices of the shapes that overlap no better one by more than the threshold."""
    kept = []
    for index in np.argsort(-scores, kind='stable').tolist():
        if not kept or (overlap(shapes[kept], shapes[index]) <= threshold).all():
            kept.append(index)
    return kept


def is_inside(x, y, corners):
    """Count the sides to the right of a point, up to one that it lies on: 1 if they are odd."""
    count = 0
    for (x1, y1), (x2, y2) in zip(corners, [corners[-1], *corners[:-1]], strict=True):
        if (x, y) in ((x1, y1), (x2, y2)):
            break
        if (y1 < y) != (y2 < y):
            at = x1 + (y - y1) * (x2 - x1) / (y2 - y1)
            if at == x:
                break
            count += at > x
    return count % 2
