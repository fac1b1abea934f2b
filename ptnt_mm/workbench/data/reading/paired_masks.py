"""Read the masks of images, and report those that cannot be used."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.deploy.decoding import DECODERS, why_unreadable
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.data.class_masks import (
    IGNORED,
    NOT_READABLE,
    OF_OTHER_SIZE,
    UnusableMaskError,
    read_values,
)
from ptnt_mm.workbench.data.image_files import DROP_ROTATION, is_on_its_side
from ptnt_mm.workbench.data.labels import LabelledImage
from ptnt_mm.workbench.data.many_files import on_threads
from ptnt_mm.workbench.data.reading.collector import Collector
from ptnt_mm.workbench.data.reading.mask_pairs import Content, Pairs, find_pairs, option_for, spread
from ptnt_mm.workbench.data.tree import Tree, split_in

_SHOWN = 3  # kinds of masks that are not read


def read_pairs(
    collector: Collector,
    content_of: Callable[[np.ndarray], Content],
    split_of: Callable[[Path], str | None] = lambda image: None,
) -> Iterator[tuple[LabelledImage, Path, Content]]:
    """Read the mask of each image; report those that cannot be used, and drop their images.

    Args:
        collector: Gets the images and the problems.
        content_of: Converts the values of a mask, (H, W) int64; raises an exception of any kind if
            they cannot be used.
        split_of: The split of an image, if a list has it.

    Yields:
        The image, its mask, and the result of ``content_of``.
    """
    labels = collector.labels
    found = set_masks_aside(collector)
    labels.notes += _not_read(collector.tree, found)
    masks, by_folder = found.masks, splits_in_folders(collector.tree, found.masks)
    pairs = [
        (image, mask)
        for path, mask in masks.items()
        if (image := collector.image(mask, path, split_of(path) or by_folder[path])) is not None
    ]

    def read(pair: tuple[LabelledImage, Path]) -> tuple[Content | None, str, str]:
        image, mask = pair
        try:
            values = read_values(mask)
            if sizes := other_size(values, image):
                return None, OF_OTHER_SIZE.what, sizes
            return content_of(values), '', ''
        except UnusableMaskError as error:
            return None, error.what, str(error)
        except Exception as error:  # decoders may raise anything
            return None, NOT_READABLE.what, why_unreadable(error)

    found = on_threads(read, pairs, 'Reading masks')
    for (image, mask), (content, what, detail) in zip(pairs, found, strict=True):
        if what:
            labels.report(mask, what, detail)
            labels.report(image.path, 'images without a usable mask')
            collector.drop(image)
        else:
            yield image, mask, content


def other_size(mask: np.ndarray, image: LabelledImage) -> str:
    """The sizes of a mask, (H, W), and of its image if they differ; empty if not."""
    size = mask.shape[::-1]
    if size == image.size:
        return ''
    shown = f'{size[0]}x{size[1]}, its image {image.size[0]}x{image.size[1]}'
    if size == image.size[::-1] and is_on_its_side(image.path):
        shown += f', rotated by its EXIF data: {DROP_ROTATION}'
    return shown


def splits_in_folders(tree: Tree, images: Iterable[Path]) -> dict[Path, str | None]:
    """The split of each image by a word of a folder, as in train_images, if there are several."""
    found = {}
    for image in images:
        named = (split_in(folder) for folder in reversed(tree.folders(image)))
        found[image] = tree.split_of(image) or next(filter(None, named), None)
    return found if len(set(found.values()) - {None}) > 1 else dict.fromkeys(found)


def has_large_numbers(masks: Sequence[Path]) -> bool:
    """Whether masks have numbers above 255, as object numbers may be, and classes never are."""
    for mask in spread(masks, 20):
        with suppress(Exception), Image.open(mask, formats=DECODERS) as stored:  # of any kind
            is_larger = stored.mode.startswith('I') and stored.getextrema()[1] > IGNORED
            # Black and white is read as 8 bits.
            if is_larger and read_values(mask).max() > IGNORED:
                return True
    return False


def set_masks_aside(collector: Collector) -> Pairs:
    """The images and their masks, which are not images; those without an image are reported."""
    labels, tree, pairs = collector.labels, collector.tree, find_pairs(collector.tree)
    if pairs.unclear is not None:
        mask, first, second = map(tree.relative, pairs.unclear)
        option = option_for(tree, pairs.unclear[1], pairs.unclear[0], len(pairs.masks))
        raise UserError(
            f'{tree.root}: {mask} may be the mask of {first} or of {second}: remove one, or give '
            f'the names with {option}'
        )
    labels.aside = set(pairs.aside)
    if pairs.painted:
        pictures = counted(len(pairs.painted), 'picture')
        example = tree.relative(pairs.painted[0])
        labels.notes.append(f'{pictures} with labels painted on are not read, such as {example}')
    for mask in pairs.unused:
        labels.report(mask, 'masks without an image')
    return pairs


def _not_read(tree: Tree, pairs: Pairs) -> list[str]:
    """Remarks about images with several masks, of which one is read."""
    lines = []
    for other in pairs.further[:_SHOWN]:
        used, unused = tree.relative(pairs.masks[other.image]), tree.relative(other.mask)
        option = option_for(tree, other.image, other.mask, other.count)
        lines.append(
            f'{counted(other.count, "image")} with another mask: {used} is read, and not {unused}, '
            f'which {option} would read'
        )
    if (more := len(pairs.further) - _SHOWN) > 0:
        lines.append(f'{counted(more, "more kind")} of masks are not read either')
    if any(other.is_alike for other in pairs.further):
        lines[-1] += (
            '; if each mask is one object, or the area of one class, `format=object-masks` reads '
            'all of them, with the classes in their names'
        )
    return lines
