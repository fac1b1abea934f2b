"""Draw the polygons and run lengths of COCO files as masks of class indices."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
from pycocotools import mask as coco

from ptnt_mm.data.class_masks import (
    IGNORED,
    check_neighbours,
    check_replaceable,
    save_mask,
    write_names,
)
from ptnt_mm.data.coco_file import FOR_MASKS, CocoFile, read
from ptnt_mm.utils.atomic_files import folder_written_whole
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.progress import watched
from ptnt_mm.utils.text import some, unknown_name

BACKGROUND = 'background'  # the class with the index 0

FAR = 10
"""How many sides of an image a polygon may lie outside of it."""


def write_masks(
    annotations: Path,
    folder: Path,
    classes: Sequence[str] | None = None,
    overwrite: bool = False,
) -> tuple[str, ...]:
    """Write one mask for each image of an annotation file, or none at all.

    Args:
        annotations: A file in COCO format.
        folder: Where to write the masks, named like the images. Created with its parents.
        classes: All category names in index order, from 1. Default: the order in the file.
        overwrite: Replace the folder if it holds only masks that this function drew.

    Returns:
        The class names in index order, background first.

    Raises:
        UserError: if an annotation cannot be drawn, if masks in a neighbouring folder have other
            classes or another class order, or if the folder cannot be written.
    """
    folder = folder.resolve()
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        if not overwrite:
            raise UserError(f'{folder} exists: choose another name, or give --overwrite')
        check_replaceable(folder)
    file = _read(annotations)
    if classes is not None:
        file = _ordered(file, classes)
    names = class_names(file)
    check_neighbours(folder, names)
    targets = _targets(file)
    labels = {category['id']: label for label, category in enumerate(file.categories, start=1)}
    objects: dict[int | str, list[dict]] = {number: [] for number in file.images}
    for annotation in file.annotations:
        objects[annotation['image_id']].append(annotation)
    try:
        with folder_written_whole(folder) as building:
            write_names(building, names)
            for image in watched(file.images.values(), len(file.images), 'Drawing masks'):
                pixels = draw_mask(image, objects[image['id']], labels)
                save_mask(pixels, len(names), building / targets[image['id']])
    except OSError as error:
        raise UserError(f'{folder} cannot be written: {error.strerror or error}') from error
    return names


def draw_mask(
    image: Mapping, annotations: list[dict], labels: Mapping[int | str, int]
) -> np.ndarray:
    """Draw the objects of an image: small ones over large ones, all of them over crowds.

    Args:
        image: The image's entry, with height and width in pixels.
        annotations: The annotations of its objects.
        labels: Class index by category id.

    Returns:
        The class index of each pixel, (H, W) uint8.

    Raises:
        UserError: if run lengths have another size than the image, or cannot be drawn.
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


def class_names(file: CocoFile) -> tuple[str, ...]:
    """Return the class names in index order: background, then the categories as in the file.

    Raises:
        UserError: if there are no categories or too many, or if two share a name.
    """
    names = (BACKGROUND, *(category['name'] for category in file.categories))
    if not 1 < len(names) <= IGNORED:
        raise UserError(
            f'{file.path} has {len(file.categories)} categories: masks have room for 1 to '
            f'{IGNORED - 1} beside {BACKGROUND}'
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UserError(
            f'{file.path} would give several classes of one name: {some(twice)}. '
            f'{BACKGROUND} is the class of pixels without an object; merge or rename the categories'
        )
    return names


def _read(annotations: Path) -> CocoFile:
    """Read an annotation file and check that all of it can be drawn."""
    file = read(annotations, FOR_MASKS)
    if file.problems:
        listed = '\n'.join(f'{finding.what}: {finding.advice}' for finding in file.problems)
        raise UserError(f'{annotations} cannot be drawn completely:\n{listed}')
    if not file.images:
        raise UserError(f'{annotations} lists no image')
    return file


def _ordered(file: CocoFile, classes: Sequence[str]) -> CocoFile:
    """Reorder the categories of a file; the names are all of them, each once."""
    names = [category['name'] for category in file.categories]
    unknown = [name for name in classes if name not in names]
    if unknown:
        raise UserError(f'--classes: {unknown_name("category", unknown[0], names)}')
    missing = [name for name in names if name not in classes]
    if missing:
        raise UserError(
            f'--classes lacks categories of {file.path}: {some(missing)}. Name all of them, or '
            'remove them and their objects from the file'
        )
    twice = [name for name, count in Counter(classes).items() if count > 1]
    if twice:
        raise UserError(f'--classes names some twice: {some(twice)}. Name each category once')
    categories = sorted(file.categories, key=lambda category: classes.index(category['name']))
    return replace(file, categories=categories)


def _targets(file: CocoFile) -> dict[int | str, PurePosixPath]:
    """Map each image id to the path of its mask, relative to the folder."""
    names = {number: PurePosixPath(image['file_name']) for number, image in file.images.items()}
    outside = [str(name) for name in names.values() if name.is_absolute() or '..' in name.parts]
    if outside:
        raise UserError(
            f'{file.path} has images whose masks would lie outside of the folder: '
            f'{some(outside)}. Write file_name relative to the image folder'
        )
    targets = {number: name.with_suffix('.png') for number, name in names.items()}
    twice = [str(name) for name, count in Counter(targets.values()).items() if count > 1]
    if twice:
        raise UserError(
            f'{file.path} has several images for one mask: {some(twice)}. Rename images so that '
            'they differ in more than the file extension'
        )
    return targets


def run_lengths(mask: Mapping | list, height: int, width: int) -> dict:
    """Convert an object's segmentation to the run lengths that pycocotools decodes.

    Args:
        mask: Polygons of finite numbers, or run lengths.
        height: Of its image, in pixels.
        width: Of its image, in pixels.

    Raises:
        ValueError: if it does not describe every pixel of the image: pycocotools would fill the
            rest with whatever is in memory.
    """
    if isinstance(mask, list):
        polygons = list(map(np.asarray, mask))
        if any(polygon.dtype.kind not in 'iuf' or polygon.ndim != 1 for polygon in polygons):
            raise ValueError('a polygon is not a list of numbers')
        if not all(np.isfinite(polygon).all() for polygon in polygons):
            raise ValueError('a polygon is not finite')
        # pycocotools walks along the edges, pixel by pixel.
        if any(np.abs(polygon).max() > FAR * max(height, width) for polygon in polygons):
            raise ValueError('a polygon lies far outside of the image')
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
    """Encode a mask, (H, W) bool, as run lengths that JSON can hold: ``size`` and ``counts``."""
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
        raise ValueError('its run lengths are cut off')
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    places = np.arange(len(chunks)) - np.repeat(starts, lengths)
    numbers = np.add.reduceat((chunks & 31) << 5 * places, starts)
    numbers -= np.where(chunks[ends] & 16, 1 << 5 * lengths, 0)
    # From the fourth on, each is the difference from the one two before it.
    return int(numbers[0] + numbers[1::2].cumsum().sum() + numbers[2::2].cumsum().sum())
