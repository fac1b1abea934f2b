"""Boxes with an angle, or with four corners, as the data sets and models of mmrotate have them."""

from typing import Any

import numpy as np

from ptnt_mm.workbench.data.masks import turned_box


def as_array(boxes: Any) -> np.ndarray:
    """Boxes of mmdet, a tensor or an array -> an array of the same shape."""
    return np.asarray(getattr(boxes, 'tensor', boxes), dtype=np.float64)


def corners_of(boxes: np.ndarray) -> np.ndarray:
    """The corners of boxes, (n, 4, 2) in pixels.

    Args:
        boxes: (n, 5), which are x, y, width, height and the angle in radians, clockwise; or (n, 8),
            x and y of each corner.
    """
    if len(boxes) and boxes.shape[1] == 5:
        boxes = np.array([turned_box(*box) for box in boxes.tolist()])
    return boxes.reshape(-1, 4, 2)


def around(corners: np.ndarray) -> np.ndarray:
    """Corners (n, 4, 2) -> the upright boxes around them, (n, 4): left, top, right, bottom."""
    return np.concatenate([corners.min(1), corners.max(1)], 1)
