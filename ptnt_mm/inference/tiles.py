"""Detection in the tiles of a large image."""

from collections.abc import Callable
from dataclasses import replace

import cv2
import numpy as np
import torch
from mmengine.structures import InstanceData

from ptnt_mm.inference.loading import LoadedImage
from ptnt_mm.labels.masks import encode_patch
from ptnt_mm.utils.tiles import Found, Patch, Tiling, Window, merge


def detect_in_tiles(
    detect: Callable[[LoadedImage], InstanceData], image: LoadedImage, tiling: Tiling
) -> InstanceData:
    """Detect in each tile, and in the whole image shrunk to a tile; merge the objects.

    Of the shrunk image, only objects count that are longer than a tile, so that none holds them.

    Args:
        detect: Finds the objects of a part of the image: its boxes are in pixels of that part.
        image: Larger than a tile.
        tiling: The tiles.

    Returns:
        Objects with ``masks``, if there are any, as a list of COCO's run lengths.
    """
    height, width = image.size
    parts = [
        _found(detect(_crop(image, window)), window) for window in tiling.windows(width, height)
    ]
    factor = max(width, height) / tiling.tile
    whole = (0, 0, width, height)
    small = _with_pixels(image, _shrunk(image.pixels, factor))
    scale = np.array([width, height]) / small.size[::-1]
    parts.append(_longer(_found(detect(small), whole, scale), tiling.tile))
    merged = merge(parts, width, height)
    result = InstanceData(
        bboxes=torch.from_numpy(merged.boxes.astype(np.float32)),
        scores=torch.from_numpy(merged.scores),
        labels=torch.from_numpy(merged.labels),
    )
    if merged.masks is not None:
        result.masks = [encode_patch(*mask, (width, height)) for mask in merged.masks]
    return result


def _with_pixels(image: LoadedImage, pixels: np.ndarray) -> LoadedImage:
    size = pixels.shape[:2]
    entries = dict(image.entries, img=pixels, img_shape=size, ori_shape=size)
    return replace(image, entries=entries)


def _crop(image: LoadedImage, window: Window) -> LoadedImage:
    left, top, right, bottom = window
    return _with_pixels(image, np.ascontiguousarray(image.pixels[top:bottom, left:right]))


def _shrunk(pixels: np.ndarray, factor: float) -> np.ndarray:
    height, width = (max(round(side / factor), 1) for side in pixels.shape[:2])
    return cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)


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
