"""COCO annotations computed from the visible pixels of each object."""

from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np

from ptnt_mm.demo.scenes import CLASSES, Scene


def categories() -> list[dict[str, Any]]:
    """List the categories, with ids from 1 in the order of CLASSES."""
    return [
        dict(id=number, name=name, supercategory='thing')
        for number, name in enumerate(CLASSES, start=1)
    ]


def annotations(scene: Scene, image_id: int, first_id: int) -> list[dict[str, Any]]:
    """Describe the objects of one scene: visible polygons, tight box, area in pixels."""
    found = []
    for number, label in enumerate(scene.labels, start=1):
        mask = scene.owner == number
        found.append(
            dict(
                id=first_id + number - 1,
                image_id=image_id,
                category_id=label + 1,
                segmentation=list(polygons(mask)),
                area=int(mask.sum()),
                bbox=list(cv2.boundingRect(mask.astype(np.uint8))),
                iscrowd=0,
            )
        )
    return found


def polygons(mask: np.ndarray) -> Iterator[list[float]]:
    """Outline a mask (H, W) bool as flat [x, y, x, y, ...] lists in pixels.

    When pycocotools rasterises them, they cover exactly the mask. COCO polygons cannot have holes,
    so a piece with a hole is cut in two through the hole.
    """
    count, pieces = cv2.connectedComponents(mask.astype(np.uint8), connectivity=8)
    for number in range(1, count):
        piece = pieces == number
        column = _hole_column(piece)
        if column is None:
            yield _outline(piece)
            continue
        for side in (np.s_[:, :column], np.s_[:, column:]):
            half = np.zeros_like(piece)
            half[side] = piece[side]
            yield from polygons(half)


def _hole_column(piece: np.ndarray) -> int | None:
    """Find a column that cuts through a hole of the piece; None if there is no hole."""
    background = np.pad(~piece, 1, constant_values=True).astype(np.uint8)
    # The background is 4-connected because the piece is 8-connected. The regions are the piece,
    # the outside and the holes.
    count, regions = cv2.connectedComponents(background, connectivity=4)
    if count <= 2:
        return None
    hole = (regions != 0) & (regions != regions[0, 0])
    columns = np.flatnonzero(hole.any(axis=0)) - 1
    return int(columns[len(columns) // 2])


def _outline(piece: np.ndarray) -> list[float]:
    # At twice the size, the contour runs a quarter of a pixel inside the true edge. So every pixel
    # centre is clearly inside or outside, and even a single pixel becomes a polygon.
    doubled = piece.astype(np.uint8).repeat(2, axis=0).repeat(2, axis=1)
    contours, _ = cv2.findContours(doubled, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    return ((contours[0].reshape(-1) + 0.5) / 2).tolist()
