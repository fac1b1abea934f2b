"""Find and read the mask of each image: a file with a similar name, or in a parallel folder."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image

from ptnt_mm.labels.class_masks import IGNORED
from ptnt_mm.labels.formats.format import Collector
from ptnt_mm.labels.formats.mask_values import read_values
from ptnt_mm.labels.model import LabelledImage, Labels
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.decoding import DECODERS, why_unreadable
from ptnt_mm.utils.many_files import on_threads

Content = TypeVar('Content')

_WORDS = {
    *('mask', 'masks', 'label', 'labels', 'annot', 'annots', 'annotation', 'annotations', 'gt'),
    *('groundtruth', 'truth', 'seg', 'segs', 'segmentation', 'segmentations', 'segmentationclass'),
    *('segmentationclassraw', 'gtfine', 'trimaps', 'trainannot', 'valannot', 'testannot'),
}
_IMAGE_WORDS = {'images', 'image', 'imgs', 'img', 'jpegimages', 'leftimg8bit', 'pictures', 'input'}
_OF_OBJECTS = 'segmentationobject'
_ENDING = re.compile(
    r'(_gtfine_label(train)?ids|_leftimg8bit|[_-](masks?|seg|segmentation|labels?|gt|l|trimap))$'
)


def read_pairs(
    collector: Collector,
    content_of: Callable[[np.ndarray], Content],
    splits: Mapping[str, str | None] | None = None,
) -> Iterator[tuple[LabelledImage, Path, Content]]:
    """Read the mask of each image; report those that cannot be used, and drop their images.

    Args:
        collector: Gets the images and the problems.
        content_of: Converts the values of a mask, (H, W) int64; raises an exception of any kind if
            they cannot be used.
        splits: The splits of images by the names of their files without suffix.

    Yields:
        The image, its mask, and the result of ``content_of``.
    """
    labels = collector.labels
    pairs = [
        (image, mask)
        for path, mask in _set_masks_aside(collector.tree, labels).items()
        if (image := collector.image(mask, path, (splits or {}).get(path.stem))) is not None
    ]

    def read(pair: tuple[LabelledImage, Path]) -> tuple[Content | None, str]:
        image, mask = pair
        try:
            values = read_values(mask)
            size = values.shape[::-1]
            if size != image.size:
                raise ValueError(f'it has {size} pixels, its image {image.size}')
            return content_of(values), ''
        except Exception as error:  # decoders may raise anything
            return None, why_unreadable(error)

    found = on_threads(read, pairs, 'Reading masks')
    for (image, mask), (content, fault) in zip(pairs, found, strict=True):
        if fault:
            labels.report(mask, 'masks that cannot be used', fault)
            labels.report(image.path, 'images without a usable mask')
            collector.drop(image)
        else:
            yield image, mask, content


def has_large_numbers(pairs: dict[Path, Path]) -> bool:
    """Whether masks have numbers above 255, as object numbers may be, and classes never are."""
    for mask in islice(pairs.values(), 20):
        with suppress(Exception), Image.open(mask, formats=DECODERS) as stored:  # of any kind
            if stored.mode.startswith('I') and stored.getextrema()[1] > IGNORED:
                return True
    return False


def _set_masks_aside(tree: Tree, labels: Labels) -> dict[Path, Path]:
    """The mask of each image; masks are not images, and those without an image are reported."""
    pairs, labels.aside = find_pairs(tree)
    stems = {_stem(image) for image in tree.images if image not in labels.aside}
    for mask in sorted(labels.aside - set(pairs.values())):
        # Cityscapes has several masks for an image.
        if not any(_stem(mask).startswith(stem) for stem in stems):
            labels.report(mask, 'masks without an image')
    return pairs


def find_pairs(tree: Tree) -> tuple[dict[Path, Path], set[Path]]:
    """The mask of each image, and all files that are masks."""
    masks = {file for file in tree.images if _is_mask(tree, file)}
    by_key: dict[tuple, list[Path]] = {}
    by_stem: dict[str, list[Path]] = {}
    # Cityscapes has several masks for an image; those for training come first.
    for mask in sorted(masks, key=lambda file: (-file.stem.count('TrainIds'), str(file))):
        if _OF_OBJECTS not in str(mask.parent).casefold():
            by_key.setdefault(_key(tree, mask), []).append(mask)
            by_stem.setdefault(_stem(mask), []).append(mask)
    pairs = {}
    for image in tree.images:
        if image in masks:
            continue
        same = by_stem.get(_stem(image), [])
        mask = by_key.get(_key(tree, image)) or (same if len(same) == 1 else None)
        if mask:
            pairs[image] = mask[0]
    return pairs, masks


def _is_mask(tree: Tree, file: Path) -> bool:
    folders = [part.casefold() for part in tree.folders(file)]
    words = {word for folder in folders for word in (folder, *re.split(r'[_\- ]+', folder))}
    return bool(words & _WORDS) or _OF_OBJECTS in words or bool(_mask_ending(file))


def _mask_ending(file: Path) -> str:
    ending = _ENDING.search(file.stem.casefold())
    return ending[0] if ending and ending[0] != '_leftimg8bit' else ''


def _stem(file: Path) -> str:
    return _ENDING.sub('', file.stem.casefold())


def _key(tree: Tree, file: Path) -> tuple[str, ...]:
    """The key that an image and its mask share: folders without their kind, and the name."""
    folders = [part.casefold() for part in tree.folders(file)]
    kept = (_without_kind(folder) for folder in folders)
    return (*filter(None, kept), _stem(file))


def _without_kind(folder: str) -> str:
    """train_labels -> train, images -> nothing."""
    words = (word.removesuffix('annot') for word in re.split(r'[_\- ]+', folder))
    return '_'.join(word for word in words if word and word not in _WORDS | _IMAGE_WORDS)
