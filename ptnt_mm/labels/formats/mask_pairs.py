"""Find and read the mask of each image: what their names have in common, and what they show."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image

from ptnt_mm.labels.class_masks import (
    IGNORED,
    NOT_READABLE,
    OF_OTHER_SIZE,
    UnusableMaskError,
    read_values,
)
from ptnt_mm.labels.formats.format import Collector
from ptnt_mm.labels.formats.paired_names import (
    Name,
    Relation,
    Words,
    constant_words,
    is_split,
    name_of,
    relations,
    without_ordinals,
)
from ptnt_mm.labels.formats.paired_pictures import FLAT, PHOTOGRAPH, Pictures
from ptnt_mm.labels.model import LabelledImage
from ptnt_mm.labels.tree import Tree, split_in
from ptnt_mm.utils.decoding import DECODERS, why_unreadable
from ptnt_mm.utils.many_files import on_threads
from ptnt_mm.utils.text import counted

Content = TypeVar('Content')

_MASK = re.compile(
    r'(masks?|labels?|annots?|annotations?|gt|ground|truth|groundtruth|segs?|segment.*|trimaps?'
    r'|manual|labelids|labeltrainids|gtfine)'
)
_IMAGE = re.compile(r'(images?|imgs?|pictures?|photos?|input|rgb|jpegimages|pngimages|leftimg8bit)')
_PAINTED = re.compile(r'(viz|visual.*|overlays?|overlaid|blend.*|preview|painted|drawn)')
_OF_OBJECTS = re.compile(r'(.*object|instances?|inst|instanceids|panoptic)')

_NAMED = re.compile(f'{_MASK.pattern}|{_OF_OBJECTS.pattern}')

_CONSTANT = 3  # the kind of masks that are all equal
_RUNS = 'runs'  # the folder of YOLO's results

_SAMPLE = 6  # pairs that are looked at for each relation


@dataclass
class Pairs:
    """The images and masks of a folder.

    Attributes:
        masks: The mask of each image.
        aside: All masks, and pictures with labels painted on.
        unused: Masks without an image.
        painted: An example for each group of pictures with labels painted on, and its number.
        others: For each group of further masks that show something else: the mask that is used, the
            other mask of its image, and the number of such images.
    """

    masks: dict[Path, Path] = field(default_factory=dict)
    aside: set[Path] = field(default_factory=set)
    unused: list[Path] = field(default_factory=list)
    painted: dict[Path, int] = field(default_factory=dict)
    others: list[tuple[Path, Path, int]] = field(default_factory=list)

    @property
    def folders(self) -> set[Path]:
        """The folders of the masks."""
        return {mask.parent for mask in self.masks.values()}


@dataclass(frozen=True)
class _View:
    """A relation of images and their masks.

    Attributes:
        relation: The images come first.
        score: How well the names and the contents agree with that.
        is_painted: Whether a name speaks of labels that are painted on the image.
        kind: 0 for masks of classes, 1 for colours, 2 for objects, 3 for masks that are all equal,
            such as that of the circle that a lens shows.
        is_aligned: Whether the edges of masks are those of the images, which they are not in turned
            copies.
        is_flat: Whether the images are flat, too, as drawings and segments are.
        detail: The contrast of neighbouring pixels in the images, which paint reduces.
    """

    relation: Relation
    score: int
    is_painted: bool
    kind: int
    is_aligned: bool
    is_flat: bool
    detail: float

    def rank(self, most: int) -> tuple:
        """Sorts the best first.

        Args:
            most: The number of pairs in the largest view; few are those of another purpose.
        """
        relation = self.relation
        size = len(relation.first | relation.second)
        # Cityscapes has two masks of classes; that for training comes first.
        for_training = any('train' in word for word in relation.second if not is_split(word))
        order = -self.score, self.kind, not for_training, -len(relation.pairs)
        words = sorted(relation.first), sorted(relation.second)
        # Of cell.tif and cell_flows.tif, the first is the image.
        is_plain = not relation.first
        looks = not self.is_aligned, self.is_flat, not is_plain, -self.detail
        # Only one group is of a split: it may be another data set.
        is_far = any(map(is_split, relation.first | relation.second))
        is_few = len(relation.pairs) < most / 10
        is_doubtful = self.is_painted, self.kind == _CONSTANT, is_few, is_far
        return *is_doubtful, *order, *looks, size, words


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
    masks = _set_masks_aside(collector)
    by_folder = _splits_in_folders(collector.tree, masks)
    pairs = [
        (image, mask)
        for path, mask in masks.items()
        if (image := collector.image(mask, path, split_of(path) or by_folder[path])) is not None
    ]

    def read(pair: tuple[LabelledImage, Path]) -> tuple[Content | None, str, str]:
        image, mask = pair
        try:
            values = read_values(mask)
            size = values.shape[::-1]
            if size != image.size:
                sizes = f'{size[0]}x{size[1]}, its image {image.size[0]}x{image.size[1]}'
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


def _splits_in_folders(tree: Tree, images: Iterable[Path]) -> dict[Path, str | None]:
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
            if stored.mode.startswith('I') and stored.getextrema()[1] > IGNORED:
                return True
    return False


def spread(items: Sequence[Content], most: int) -> list[Content]:
    """Some of the items, evenly spread."""
    return list(items[:: max(1, -(-len(items) // most))])


def _set_masks_aside(collector: Collector) -> dict[Path, Path]:
    """The mask of each image; masks are not images, and those without an image are reported."""
    labels, pairs = collector.labels, find_pairs(collector.tree)
    labels.aside = set(pairs.aside)
    for picture, count in pairs.painted.items():
        pictures = counted(count, 'picture')
        example = collector.tree.relative(picture)
        labels.notes.append(f'{pictures} with labels painted on are not read, such as {example}')
    for used, other, count in pairs.others:
        used, other = map(collector.tree.relative, (used, other))
        labels.notes.append(
            f'{counted(count, "image")} with another mask that shows something else: {used} is '
            f'read, {other} is not'
        )
    for mask in pairs.unused:
        labels.report(mask, 'masks without an image')
    return pairs.masks


@lru_cache(maxsize=1)  # several formats look for pairs in one folder
def find_pairs(tree: Tree) -> Pairs:
    """The mask of each image: never one of another split, and each mask for one image."""
    files = _pictures(tree)
    plain = without_ordinals([folder for file in files for folder in tree.folders(file)])
    folders = {file: [plain[folder] for folder in tree.folders(file)] for file in files}
    constant = constant_words([(file.stem, *folders[file]) for file in files])
    names = {file: name_of(file, folders[file], constant) for file in files}
    pictures = Pictures()
    pairs = Pairs()
    views: list[_View] = []
    readings = [names.__getitem__]
    if has_folder_of_masks(tree):
        known = {file: list(filter(_is_known, folders[file])) for file in files}
        readings.append(lambda file: name_of(file, known[file], constant))
    for reading in readings:
        while True:
            used = pairs.masks.keys() | pairs.aside
            found = relations([reading(file) for file in files if file not in used])
            judged = [view for relation in found if (view := _judge(relation, pictures))]
            most = max((len(view.relation.pairs) for view in judged), default=0)
            ranked = sorted(judged, key=lambda view: view.rank(most))
            before = len(views)
            for view in ranked:
                # Masks whose images are missing are no images of other masks.
                images, folders = [names[image] for image, _ in view.relation.pairs], pairs.folders
                named = sum(_is_named_as_mask(image, views, folders) for image in images)
                if 2 * named < len(images) and _take(view, pairs, pictures):
                    views.append(view)
            if len(views) == before:
                break
    _set_painted_aside(names, pairs, pictures)
    _set_unused_aside(names, views, pairs)
    return pairs


@cache
def _is_known(folder: str) -> bool:
    """Whether the name of a folder says that it has images, masks, or those of a split."""
    words = name_of(Path(), [folder]).kinds
    return _any(re.compile(f'{_MASK.pattern}|{_IMAGE.pattern}|<.*'), words)


def has_folder_of_masks(tree: Tree) -> bool:
    """Whether the name of a folder of pictures speaks of masks."""
    parents = {file.parent for file in tree.images}
    paths = (tree.relative(parent).parts for parent in parents)
    folders = {folder for path in paths if _RUNS not in path for folder in path}
    return any(_any(_MASK, name_of(Path(), [folder]).kinds) for folder in folders)


def _pictures(tree: Tree) -> list[Path]:
    """The files that may be images or masks: not the pictures of YOLO's runs."""
    return [file for file in tree.images if _RUNS not in tree.folders(file)]


def _set_painted_aside(names: dict[Path, Name], pairs: Pairs, pictures: Pictures) -> None:
    """Set pictures aside that are images with labels painted on."""
    known = [name for file, name in names.items() if file in pairs.masks or file not in pairs.aside]
    for relation in relations(known) if len(known) > len(pairs.masks) else ():
        for turned in (relation, relation.turned()):
            found = [
                (image, other)
                for image, other in turned.pairs
                if image in pairs.masks and other not in pairs.masks and other not in pairs.aside
            ]
            if found and _is_painted(turned.second, found, pairs, pictures):
                pairs.aside |= {other for _, other in found}
                example = min(other for _, other in found)
                pairs.painted[example] = len(found)


def _is_painted(
    words: Words, found: Sequence[tuple[Path, Path]], pairs: Pairs, pictures: Pictures
) -> bool:
    """Whether other pictures of images show their labels."""
    if _any(_PAINTED, words):
        return True
    return pictures.are_painted(
        [(image, other, pairs.masks[image]) for image, other in spread(found, _SAMPLE)]
    )


def _set_unused_aside(names: dict[Path, Name], views: Sequence[_View], pairs: Pairs) -> None:
    """Set the other files aside that have the names of masks."""
    others, folders = names.keys() - pairs.masks.keys() - pairs.aside, pairs.folders
    named = (file for file in others if _is_named_as_mask(names[file], views, folders))
    pairs.unused += sorted(named)
    pairs.aside |= set(pairs.unused)


def _is_named_as_mask(name: Name, views: Sequence[_View], folders: Set[Path]) -> bool:
    """Whether a file has the words of the masks of a view, and not those of its images."""
    relations_with = (view.relation for view in views if view.relation.second <= name.kinds)
    suffix = {name.file.suffix.lower()}
    # Words name a mask anywhere, a suffix only where masks are.
    return any(
        not relation.first & name.kinds
        and (relation.second - suffix or name.file.parent in folders)
        for relation in relations_with
    )


def _judge(relation: Relation, pictures: Pictures) -> _View | None:
    """Which of two groups are the masks of the other; None if none are."""
    sample = spread(relation.pairs, _SAMPLE)
    contrast = pictures.contrast(sample)
    score = contrast + _hint(relation.second) - _hint(relation.first)
    if score < 0:
        relation, sample = relation.turned(), [pair[::-1] for pair in sample]
        score, contrast = -score, -contrast
    is_named = _any(_NAMED, relation.second) and not _any(_NAMED, relation.first)
    is_painted = _any(_PAINTED, relation.second)
    if contrast < 0 or not (contrast or (is_named and not is_painted)):
        return None
    masks = [mask for _, mask in sample]
    # Without a word that tells, the pixels have to; many masks may be empty.
    is_aligned = pictures.are_aligned(sample if is_named else spread(relation.pairs, 4 * _SAMPLE))
    if pictures.roughness(masks) > PHOTOGRAPH or not (is_named or is_aligned):
        return None
    if pictures.are_constant(masks):
        kind = _CONSTANT
    else:
        kind = 2 if _any(_OF_OBJECTS, relation.second) else int(pictures.are_coloured(masks))
    is_painted |= _any(_PAINTED, relation.first)
    is_flat = pictures.roughness([image for image, _ in sample]) < FLAT
    detail = pictures.detail(sample)
    return _View(relation, score, is_painted, kind, is_aligned, is_flat, detail)


def _hint(words: Words) -> int:
    """Above 0 for words of masks, below 0 for words of images."""
    return 2 * _any(_NAMED, words) - _any(_IMAGE, words)


def _any(pattern: re.Pattern, words: Words) -> bool:
    return any(map(pattern.fullmatch, words))


def _take(view: _View, pairs: Pairs, pictures: Pictures) -> bool:
    """Use the pairs of a view whose files have no partner; whether it fits to the views before."""
    fits = [
        (image, mask)
        for image, mask in view.relation.pairs
        if image not in pairs.aside and mask not in pairs.masks
    ]
    if 2 * len(fits) < len(view.relation.pairs):
        return False
    has_masks = bool(pairs.masks)
    # Other masks of the same images have other values: the rest of them would not fit.
    known = [(pairs.masks[image], mask) for image, mask in fits if image in pairs.masks]
    is_other = 2 * len(known) > len(fits)
    is_constant = view.kind == _CONSTANT
    if is_other and not is_constant and not pictures.say_the_same(spread(known, _SAMPLE)):
        pairs.others.append((*known[0], len(known)))
    for image, mask in fits:
        if mask not in pairs.aside and not is_other and not (is_constant and has_masks):
            pairs.masks.setdefault(image, mask)
    pairs.aside.update(mask for _, mask in fits)
    return True
