"""Suppressing and comparing boxes, as (x1, y1, x2, y2)."""

import numpy as np
import torchvision
from torch import Tensor

from .computing import widened


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float, offset: int) -> Tensor:
    """Keep the boxes that overlap no better one by more than the threshold.

    Boxes of equal score are taken in the order given.

    Args:
        boxes: (N, 4).
        scores: (N,).
        iou_threshold: Rounded to float32 as in mmcv, so that an overlap equal to it stays.
        offset: 1 where x2 and y2 name the last pixel inside, else 0.

    Returns:
        Indices of the boxes kept, the best first.
    """
    boxes, scores = widened(boxes, scores)
    if offset:
        boxes = boxes + boxes.new_tensor([0, 0, offset, offset])
    return torchvision.ops.nms(boxes, scores, float(np.float32(iou_threshold)))
