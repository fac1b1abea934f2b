"""Detection in the tiles of a large image."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.structures import InstanceData

from ptnt_mm.workbench.data.masks import encode_patch
from ptnt_mm.workbench.data.tiles import Found, Patch, Tiling, Window, merge


def detect_in_tiles(
    detect: Callable[[np.ndarray], InstanceData], image: np.ndarray, tiling: Tiling
) -> InstanceData:
    """Detect in each tile, and in the whole image shrunk to a tile; merge the objects.

    Of the shrunk image, only objects count that are longer than a tile, so that none holds them.

    Args:
        detect: Finds the objects of a part, (h, w) or (h, w, C): its boxes are in pixels of it.
        image: Larger than a tile, (H, W) or (H, W, C).
        tiling: The tiles.

    Returns:
        Objects with ``masks``, if there are any, as a list of COCO's run lengths. Their metainfo
        contains ``tile``, the side of a tile, which they are drawn for.
    """
    height, width = image.shape[:2]
    parts = []
    for window in tiling.windows(width, height):
        left, top, right, bottom = window
        tile = np.ascontiguousarray(image[top:bottom, left:right])
        parts.append(_found(detect(tile), window))
    small = _shrunk(image, max(width, height) / tiling.tile)
    scale = np.array([width, height]) / small.shape[1::-1]
    parts.append(_longer(_found(detect(small), (0, 0, width, height), scale), tiling.tile))
    merged = merge(parts, width, height)
    result = InstanceData(
        metainfo=dict(tile=tiling.tile),
        bboxes=torch.from_numpy(merged.boxes.astype(np.float32)),
        scores=torch.from_numpy(merged.scores),
        labels=torch.from_numpy(merged.labels),
    )
    if merged.masks is not None:
        result.masks = [encode_patch(*mask, (width, height)) for mask in merged.masks]
    return result


def part_of(entries: Mapping[str, Any], pixels: np.ndarray) -> dict[str, Any]:
    """A loaded image's entries for the pipeline's other steps, with a part of its pixels."""
    size = pixels.shape[:2]
    return dict(entries, img=pixels, img_shape=size, ori_shape=size)


def _shrunk(image: np.ndarray, factor: float) -> np.ndarray:
    height, width = (max(round(side / factor), 1) for side in image.shape[:2])
    return cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)


def _found(found: InstanceData, window: Window, scale: np.ndarray | float = 1.0) -> Found:
    """Objects in pixels of the image; ``scale`` is its width and height in those of the part."""
    boxes, patches, offset = found.bboxes.double().numpy(), None, np.array(window[:2])
    scale = np.broadcast_to(scale, 2)
    if 'masks' in found:
        patches = [_cropped(mask) for mask in found.masks.numpy()]
        if not boxes.any():  # SOLO predicts masks, with boxes of zeros
            boxes = np.array([_around(patch) for patch in patches], float).reshape(-1, 4)
        patches = [_placed(patch, scale, offset) for patch in patches]
    boxes = boxes * np.tile(scale, 2) + np.tile(offset, 2)
    return Found(window, boxes, found.scores.numpy(), found.labels.numpy(), patches)


def _longer(found: Found, side: int) -> Found:
    """The objects whose longer side is above ``side`` pixels."""
    boxes = found.boxes
    kept = (boxes[:, 2:] - boxes[:, :2]).max(axis=1, initial=0) > side
    masks = found.masks and [found.masks[i] for i in np.flatnonzero(kept)]
    return replace(
        found, boxes=boxes[kept], scores=found.scores[kept], labels=found.labels[kept], masks=masks
    )


def _cropped(mask: np.ndarray) -> Patch:
    """A mask (H, W) without the empty rows and columns around it."""
    left, top, width, height = cv2.boundingRect(mask.astype(np.uint8))
    return Patch(mask[top : top + height, left : left + width].copy(), left, top)


def _around(patch: Patch) -> tuple[int, int, int, int]:
    height, width = patch.pixels.shape
    return patch.left, patch.top, patch.left + width, patch.top + height


def _placed(patch: Patch, scale: np.ndarray, offset: np.ndarray) -> Patch:
    """A patch of a part of the image, enlarged and moved to its place in the image."""
    first = np.floor(np.array(_around(patch)[:2]) * scale).astype(int)
    last = np.floor(np.array(_around(patch)[2:]) * scale).astype(int)
    pixels = patch.pixels
    if patch.pixels.size and tuple(last - first) != patch.pixels.shape[::-1]:
        finer = cv2.resize(pixels.astype(np.uint8), tuple((last - first).tolist()))
        pixels = finer > 0
    left, top = (first + offset).tolist()
    return Patch(pixels, left, top)
