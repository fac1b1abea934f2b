"""Class masks: indices, palettes, colours with a table, or black and white."""

import re
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from PIL import Image

from ptnt_mm.data.class_masks import IGNORED
from ptnt_mm.project.formats.format import Collector, Format
from ptnt_mm.project.formats.mask_values import Table, read_table, shown_value, values_of
from ptnt_mm.project.formats.voc import image_sets, splits_of
from ptnt_mm.project.labels import Labels
from ptnt_mm.project.tree import Tree
from ptnt_mm.utils.decoding import DECODERS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.many_files import on_threads
from ptnt_mm.utils.text import first_few

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


def _find(tree: Tree) -> str:
    pairs, _ = find_pairs(tree)
    if not pairs or has_large_numbers(pairs):
        return ''
    image, mask = next(iter(pairs.items()))
    example = f'{tree.relative(image)} and {tree.relative(mask)}'
    return f'{len(pairs):,} pairs of image and mask, such as {example}'


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    labels = collector.labels
    pairs = set_masks_aside(tree, labels)
    splits: dict[str, str | None] = {}
    for files in image_sets(tree, 'Segmentation').values():
        splits |= splits_of(files, labels)
    values: dict[Path, frozenset[int]] = {}
    found = on_threads(values_of, list(pairs.values()), 'Reading masks')
    for (path, mask), read in zip(pairs.items(), found, strict=True):
        image = collector.image(mask, path, splits.get(path.stem))
        if image is None:
            continue
        if read.fault or read.size != image.size:
            other = f'it has {read.size}, its image {image.size}'
            labels.report(mask, 'masks that cannot be used', read.fault or other)
            labels.report(path, 'images without a usable mask')
            collector.drop(image)
            continue
        values[mask] = read.values
        collector.set(replace(image, mask=mask))
    known = set().union(*values.values())
    labels.classes, labels.mask_indices = _classes(tree, known, read_table(tree), labels)
    for mask, read in values.items():
        if unknown := sorted(read - labels.mask_indices.keys() - {IGNORED}):
            shown = first_few(map(shown_value, unknown))
            labels.report(mask, 'masks with values of no class, which are ignored', shown)
    return collector.finish()


def _classes(
    tree: Tree, values: set[int], table: Table, labels: Labels
) -> tuple[list[str], dict[int, int]]:
    """The names of the classes, and the index of each value in the masks."""
    colours = sorted(value for value in values if value > IGNORED)
    if colours and not table.colours:
        raise UserError(
            f'the masks in {tree.root} have colours or numbers above 255 '
            f'({first_few(map(shown_value, colours))}), and no table gives their classes: write '
            'class_dict.csv there, with the columns name,r,g,b'
        )
    are_indices = values <= table.names.keys() | {IGNORED}
    if table.colours and (colours or values <= table.colours.keys() or not are_indices):
        names = list(dict.fromkeys(table.colours.values()))
        return names, {value: names.index(name) for value, name in table.colours.items()}
    if values <= {0, 255}:
        names = list(table.names.values())
        if len(names) == 1:
            names = ['background', *names]
        elif len(names) != 2:
            names = ['background', 'object']
        return names, {0: 0, 255: 1}
    if table.names:
        last = max(table.names)
        names = [table.names.get(i, f'class {i}') for i in range(last + 1)]
        return names, {i: i for i in range(last + 1) if i != IGNORED}
    indices = sorted(values - {IGNORED})
    # A few values far apart are shades of grey, chosen to be visible.
    if indices[-1] >= 2 * len(indices) + 20:
        indices = sorted(values)
        shades = ', '.join(map(str, indices))
        labels.notes.append(f'the values {shades} are taken as the classes 0 to {len(indices) - 1}')
    elif indices[0] == 0:
        indices = list(range(indices[-1] + 1))
    names = ['background' if value == 0 else f'class {value}' for value in indices]
    return names, {value: index for index, value in enumerate(indices)}


def has_large_numbers(pairs: dict[Path, Path]) -> bool:
    """Whether masks have numbers above 255, as object numbers may be, and classes never are."""
    for mask in islice(pairs.values(), 20):
        with suppress(Exception), Image.open(mask, formats=DECODERS) as stored:  # of any kind
            if stored.mode.startswith('I') and stored.getextrema()[1] > IGNORED:
                return True
    return False


def set_masks_aside(tree: Tree, labels: Labels) -> dict[Path, Path]:
    """The mask of each image; masks are no images, and those without an image are reported."""
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


FORMAT = Format(
    'class-masks',
    'Class masks',
    'masks named like the images, in masks/, labels/, SegmentationClass/ or as NAME_mask.png',
    ('semantic',),
    _find,
    _read,
)
