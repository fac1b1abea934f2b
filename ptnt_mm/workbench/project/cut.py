"""Cut large training images into tiles: files of a project, each with the objects inside it.

Validation and test images stay whole, and the tiles that are evaluated are cut in memory.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from ptnt_mm.deploy.decoding import read_values, why_unreadable
from ptnt_mm.utils.atomic_files import fitted_name, write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.progress import watched
from ptnt_mm.utils.text import counted, format_bytes
from ptnt_mm.workbench.data.image_files import encode_image
from ptnt_mm.workbench.data.labels import LabelledImage, LabelledObject, Segmentation, box_between
from ptnt_mm.workbench.data.masks import area, box_of, crop_mask
from ptnt_mm.workbench.data.tiles import Tiling, Window

LEAST_SHARE = 0.1
"""The share of its area from which a part of an object counts: as in SAHI and Ultralytics.

A smaller part is written as a crowd. Its place is background for the heads of MMDetection, whose
assigners ignore crowds only with an ``ignore_iof_thr``, and then only where these fill an anchor,
which a part of a small object never does. So the share is low.
"""

_LEAST_SIDE = 1.0  # pixels; ptnt check reports narrower boxes
_JPEG = ('.jpg', '.jpeg')
_LZW = 5  # TIFF's number of a lossless compression


@dataclass(frozen=True)
class Cut:
    """The images to train on after cutting.

    Attributes:
        images: The tiles, and the images that are no larger than one.
        sources: The number of images that were cut.
        empty: The number of tiles without objects among them.
        dropped: The number of further tiles without objects.
        parts: The number of objects that end at the border of a tile, in all tiles.
        ignored: The number of those of which too little is inside to count.
        size: The size of all files in bytes.
    """

    images: list[LabelledImage]
    sources: int
    empty: int
    dropped: int
    parts: int
    ignored: int
    size: int

    def __str__(self) -> str:
        """Describe the cut in a line."""
        tiles = sum(bool(image.tile_of) for image in self.images)
        whole = len(self.images) - tiles
        also = f' and {counted(whole, "image")} no larger than one' if whole else ''
        return (
            f'{counted(tiles, "tile")} of {counted(self.sources, "image")}{also}, '
            f'{format_bytes(self.size)}; tiles without objects: {self.empty:,} kept, '
            f'{self.dropped:,} left out; objects cut at borders: {self.parts:,}, of '
            f'which {self.ignored:,} are ignored, with less than {LEAST_SHARE:.0%} inside'
        )


@dataclass(frozen=True)
class _Tile:
    """A tile before it is written.

    Attributes:
        window: Its place in the image.
        objects: The objects inside, in pixels of the tile.
        parts: The number of those that end at its border.
        ignored: The number of those of which too little is inside to count.
    """

    window: Window
    objects: tuple[LabelledObject, ...]
    parts: int
    ignored: int

    @property
    def is_empty(self) -> bool:
        """Whether no object counts."""
        return all(item.ignored for item in self.objects)


def cut_images(images: Sequence[LabelledImage], tiling: Tiling, root: Path, folder: Path) -> Cut:
    """Cut images into tiles, and write them; one image at a time is in memory.

    Tiles have the values of the image's pixels, and are lossless unless it is a JPEG. Images no
    larger than a tile are copied. Of the tiles without objects, at most as many are kept as there
    are with objects, evenly spread, and at least one tile of each image.

    Args:
        images: The images with their objects.
        tiling: The size and the overlap of the tiles.
        root: The folder of the data.
        folder: The folder for the tiles.

    Raises:
        UserError: if an image cannot be decoded, or a file cannot be written.
    """
    planned = [
        list(_tiles(image, tiling)) if max(image.size) > tiling.tile else [] for image in images
    ]
    chosen = _without_most_empty(planned)
    found, size = [], 0
    pairs = zip(images, chosen, strict=True)
    for image, tiles in watched(pairs, len(images), 'Cutting images'):
        write = _write_tiles(image, tiles, root, folder) if tiles else [_copy(image, root, folder)]
        for written, length in write:
            found.append(written)
            size += length
    kept = [tile for tiles in chosen for tile in tiles]
    return Cut(
        found,
        sources=sum(map(bool, planned)),
        empty=sum(tile.is_empty for tile in kept),
        dropped=sum(map(len, planned)) - len(kept),
        parts=sum(tile.parts for tile in kept),
        ignored=sum(tile.ignored for tile in kept),
        size=size,
    )


def _tiles(image: LabelledImage, tiling: Tiling) -> Iterator[_Tile]:
    """All tiles of an image."""
    boxes = np.array([item.box for item in image.objects], float).reshape(-1, 4)
    first, last = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    for window in tiling.windows(*image.size):
        seen = ((last > window[:2]) & (first < window[2:])).all(axis=1)
        is_part = seen & ((first < window[:2]) | (last > window[2:])).any(axis=1)
        objects, parts, ignored = [], 0, 0
        for i in np.flatnonzero(seen).tolist():
            item = image.objects[i]
            if not is_part[i]:
                objects.append(_moved(item, image.size, window))
            elif (part := _part(item, image.size, window)) is not None:
                objects.append(part)
                parts += 1
                ignored += bool(part.ignored and not item.ignored)
        yield _Tile(window, tuple(objects), parts, ignored)


def _moved(item: LabelledObject, size: tuple[int, int], window: Window) -> LabelledObject:
    """An object inside a window, in pixels of the window."""
    left, top, *_ = window
    x, y, width, height = item.box
    mask: Segmentation | None = item.segmentation
    if isinstance(mask, list):
        mask = [
            [value - (top if i % 2 else left) for i, value in enumerate(points)] for points in mask
        ]
    elif mask is not None:
        mask = crop_mask(mask, size, window)
    return replace(item, box=(x - left, y - top, width, height), segmentation=mask)


def _part(item: LabelledObject, size: tuple[int, int], window: Window) -> LabelledObject | None:
    """The part of an object inside a window, in pixels of the window; None if there is no pixel."""
    left, top, right, bottom = window
    x, y, width, height = item.box
    corners = max(x, left), max(y, top), min(x + width, right), min(y + height, bottom)
    box = box_between(corners[0] - left, corners[1] - top, corners[2] - left, corners[3] - top)
    part = replace(item, box=box)
    if item.segmentation is not None:
        mask = crop_mask(item.segmentation, size, window)
        part = replace(item, box=box_of(mask), segmentation=mask)
    if min(part.box[2:]) < _LEAST_SIDE:
        return None
    share = area(part, (right - left, bottom - top)) / area(item, size)
    return replace(part, ignored=item.ignored or ('cut' if share < LEAST_SHARE else ''))


def _without_most_empty(planned: list[list[_Tile]]) -> list[list[_Tile]]:
    """The tiles of each image to keep: those with objects, and some of the others."""
    empty = [(i, k) for i, tiles in enumerate(planned) for k, t in enumerate(tiles) if t.is_empty]
    full = sum(map(len, planned)) - len(empty)
    # An image without objects keeps its first tile.
    kept = {(i, 0) for i, tiles in enumerate(planned) if all(tile.is_empty for tile in tiles)}
    others = [place for place in empty if place not in kept]
    count = min(max(full - len(kept), 0), len(others))
    kept |= {others[i] for i in np.linspace(0, len(others) - 1, count).round().astype(int)}
    return [
        [tile for k, tile in enumerate(tiles) if not tile.is_empty or (i, k) in kept]
        for i, tiles in enumerate(planned)
    ]


def _copy(image: LabelledImage, root: Path, folder: Path) -> tuple[LabelledImage, int]:
    """Copy an image; return it with the size of the file in bytes."""
    content = image.path.read_bytes()
    file = folder / image.path.relative_to(root)
    write_atomically(file, content)
    return replace(image, path=file), len(content)


def _write_tiles(
    image: LabelledImage, tiles: Sequence[_Tile], root: Path, folder: Path
) -> Iterator[tuple[LabelledImage, int]]:
    """Write tiles of an image; yield each with the size of its file in bytes."""
    try:
        values = read_values(image.path.read_bytes())
    except Exception as error:  # decoders may raise anything
        raise UserError(f'{image.path} cannot be cut: {why_unreadable(error)}') from error
    name = image.path.relative_to(root)

    def write(tile: _Tile) -> tuple[LabelledImage, int]:
        left, top, right, bottom = tile.window
        content, suffix = _encoded(values[top:bottom, left:right], name.suffix.lower())
        file = folder / name.with_name(fitted_name(f'{name.name}_{left}_{top}{suffix}'))
        write_atomically(file, content)
        size = right - left, bottom - top
        written = LabelledImage(file, size, image.split, tile.objects, tile_of=name.as_posix())
        return written, len(content)

    pool = ThreadPoolExecutor()
    try:
        yield from pool.map(write, tiles)
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C, and when the disk is full


def _encoded(values: np.ndarray, suffix: str) -> tuple[bytes, str]:
    """Encode a tile, (H, W, 3) BGR of any type; return the file and its suffix.

    Args:
        values: The tile.
        suffix: That of its image, in lower case.
    """
    if suffix in _JPEG and values.dtype == np.uint8:  # a PNG may be called .jpg
        return encode_image(values, '.jpg'), '.jpg'
    if (values == values[..., :1]).all():
        values = values[..., 0]  # a grey image needs a third of the time to read
    suffix = '.png' if values.dtype in (np.uint8, np.uint16) else '.tif'
    # By default, older versions of OpenCV compress colours in floats with losses.
    options = [cv2.IMWRITE_TIFF_COMPRESSION, _LZW] if suffix == '.tif' else []
    return cv2.imencode(suffix, values, options)[1].tobytes(), suffix
