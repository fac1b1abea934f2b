"""Draw the polygons and run lengths of COCO files as masks of class indices."""

from collections.abc import Mapping

import numpy as np
from pycocotools import mask as coco

from ptnt_mm.data.class_masks import IGNORED
from ptnt_mm.utils.errors import UserError

BACKGROUND = 'background'  # the class with the index 0

FAR = 10
"""Limit for the distance of a polygon outside its image, in sides of the image."""


def draw_mask(
    image: Mapping, annotations: list[dict], labels: Mapping[int | str, int]
) -> np.ndarray:
    """Draw the objects of an image: small ones over large ones, and all over crowds.

    Args:
        image: The image's entry, with height and width in pixels.
        annotations: The annotations of its objects.
        labels: Class index by category id.

    Returns:
        The class index of each pixel, (H, W) uint8.

    Raises:
        UserError: if run lengths have a different size than the image, or cannot be drawn.
    """
    size = int(image['height']), int(image['width'])
    objects = []
    for annotation in annotations:
        try:
            drawn = run_lengths(annotation['segmentation'], *size)
        except Exception as error:  # pycocotools raises many kinds
            raise UserError(
                f'the mask of id {annotation["id"]} in {image["file_name"]} cannot be drawn: '
                f'{error}'
            ) from error
        # A crowd region covers several objects, so its pixels are ignored.
        is_crowd = bool(annotation.get('iscrowd'))
        label = IGNORED if is_crowd else labels[annotation['category_id']]
        objects.append((not is_crowd, -int(coco.area(drawn)), label, drawn))
    pixels = np.zeros(size, np.uint8)
    # The sort is stable: of two objects of equal area, the later one is drawn on top.
    for _, _, label, drawn in sorted(objects, key=lambda entry: entry[:2]):
        pixels[coco.decode(drawn).astype(bool)] = label
    return pixels


def run_lengths(mask: Mapping | list, height: int, width: int) -> dict:
    """Convert an object's segmentation to the run lengths that pycocotools decodes.

    Args:
        mask: Polygons of finite numbers, or run lengths.
        height: Height of its image in pixels.
        width: Width of its image in pixels.

    Raises:
        ValueError: if it does not describe every pixel of the image: pycocotools would fill the
            rest with uninitialised memory.
    """
    if isinstance(mask, list):
        polygons = list(map(np.asarray, mask))
        if any(polygon.dtype.kind not in 'iuf' or polygon.ndim != 1 for polygon in polygons):
            raise ValueError('a polygon is not a list of numbers')
        if not all(np.isfinite(polygon).all() for polygon in polygons):
            raise ValueError('a polygon is not finite')
        # pycocotools walks along the edges, pixel by pixel.
        if any(np.abs(polygon).max() > FAR * max(height, width) for polygon in polygons):
            raise ValueError('a polygon is far outside the image')
        return coco.merge(coco.frPyObjects(mask, height, width))
    if list(mask['size']) != [height, width]:
        raise ValueError(f'its size is {mask["size"]}, that of the image {[height, width]}')
    counts = mask['counts']
    total = sum(counts) if isinstance(counts, list) else _pixels_of(counts)
    if total != height * width:
        raise ValueError(f'it counts {total} pixels of {height * width}')
    if isinstance(counts, list):
        return coco.frPyObjects(mask, height, width)
    coco.decode(mask)  # refuses runs of negative length
    return dict(mask)


def encode_mask(mask: np.ndarray) -> dict:
    """Encode a mask, (H, W) bool, as run lengths for JSON: ``size`` and ``counts``."""
    encoded = coco.encode(np.asfortranarray(mask, dtype=np.uint8))
    return dict(size=encoded['size'], counts=encoded['counts'].decode())


def _pixels_of(counts: str | bytes) -> int:
    """The sum of compressed run lengths: numbers of 5 bits to a character, lowest first."""
    content = counts.encode() if isinstance(counts, str) else counts
    chunks = np.frombuffer(content, np.uint8).astype(np.int64) - ord('0')
    if not chunks.size:
        return 0
    ends = np.flatnonzero(chunks & 32 == 0)
    if not ends.size or ends[-1] != len(chunks) - 1:
        raise ValueError('its run lengths are truncated')
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    places = np.arange(len(chunks)) - np.repeat(starts, lengths)
    numbers = np.add.reduceat((chunks & 31) << 5 * places, starts)
    numbers -= np.where(chunks[ends] & 16, 1 << 5 * lengths, 0)
    # From the fourth on, each is the difference from the one two before it.
    return int(numbers[0] + numbers[1::2].cumsum().sum() + numbers[2::2].cumsum().sum())
