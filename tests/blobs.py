"""A detector of white rectangles, which finds each that it is shown."""

import cv2
import numpy as np

from ptnt_mm.deploy import Detections

SQUARES = [(4, 4, 24, 24), (50, 70, 80, 90), (52, 40, 76, 58), (100, 10, 112, 22)]
"""Boxes, of which the second and the third lie across tiles of 64 pixels."""


class Blobs:
    """Finds each white rectangle that it is shown, as a perfect detector would."""

    def __init__(self, has_masks: bool = False, has_boxes: bool = True):
        self.has_masks, self._has_boxes = has_masks, has_boxes
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, pixels: np.ndarray) -> Detections:
        self.shapes.append(pixels.shape[:2])
        count, numbers, stats, _ = cv2.connectedComponentsWithStats(
            (pixels[..., 0] > 127).astype(np.uint8)
        )
        boxes = stats[1:, :4].astype(np.float32)
        boxes[:, 2:] += boxes[:, :2]
        masks = np.stack([numbers == i for i in range(1, count)]) if count > 1 else None
        if masks is None:
            masks = np.zeros((0, *pixels.shape[:2]), bool)
        scores = np.linspace(0.9, 0.6, count - 1, dtype=np.float32)
        labels = np.zeros(count - 1, np.int64)
        shown = boxes if self._has_boxes else np.zeros_like(boxes)
        return Detections(shown, scores, labels, masks if self.has_masks else None)


def picture(boxes: list[tuple[int, int, int, int]], height: int = 160, width: int = 200):
    image = np.zeros((height, width, 3), np.uint8)
    for x1, y1, x2, y2 in boxes:
        image[y1:y2, x1:x2] = 255
    return image
