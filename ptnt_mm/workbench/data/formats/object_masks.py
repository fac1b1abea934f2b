"""Masks of objects: a file for each, in a folder of their image, or named after it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.deploy.decoding import DECODERS, why_unreadable
from ptnt_mm.utils.text import counted, finder, nfc
from ptnt_mm.workbench.data.class_masks import (
    BLURRED,
    NOT_READABLE,
    OF_OTHER_SIZE,
    indices_of,
    read_thinned,
)
from ptnt_mm.workbench.data.labels import LabelledImage, LabelledObject, Labels
from ptnt_mm.workbench.data.many_files import grouped, on_threads
from ptnt_mm.workbench.data.masks import EMPTY, from_pixels
from ptnt_mm.workbench.data.reading.collector import ONLY_CLASS, Collector
from ptnt_mm.workbench.data.reading.format import Format, Signs
from ptnt_mm.workbench.data.reading.mask_pairs import (
    Words,
    find_pairs,
    is_of_masks,
    spread,
    words_of,
)
from ptnt_mm.workbench.data.reading.paired_masks import (
    other_size,
    set_masks_aside,
    splits_in_folders,
)
from ptnt_mm.workbench.data.tree import Tree

_FOLDERS = ('masks', 'mask', 'instances', 'labels')
_SAMPLE = 6  # images, and masks of each, that are looked at
_SIDE = 512  # pixels of the longer side that are looked at
_SOME = 0.1  # share of the images with several masks, at least, and of masks without a number
_APART = 0.8  # share of the masks' areas that no other mask of the image covers
_NUMBERS = 2  # in a name with a class; those of random letters and digits have more

Masks = dict[Path, dict[Path, Words]]
"""The mask files of each image, with the words that only their own names have."""


def _find(tree: Tree) -> str:
    if masks := _in_folders(tree):
        images, total = _counted(masks)
        return f'{images} with a folder of masks each, {total}'
    every = find_pairs(tree).every
    return _named_after(tree, every) if _are_objects(every) else ''


def _find_any(tree: Tree) -> str:
    """Search for several masks of an image, whatever their names and values."""
    every = find_pairs(tree).every
    several = any(len(masks) > 1 for masks in every.values())
    return _named_after(tree, every) if several else ''


def _named_after(tree: Tree, masks: Masks) -> str:
    image, own = max(masks.items(), key=lambda item: len(item[1]))
    examples = ' and '.join(str(tree.relative(file)) for file in (image, list(own)[-1]))
    return f'{" and ".join(_counted(masks))} named after them, such as {examples}'


def _counted(masks: Masks) -> tuple[str, str]:
    return counted(len(masks), 'image'), counted(sum(map(len, masks.values())), 'mask')


def _are_objects(masks: Masks) -> bool:
    """Whether masks have numbers, and some images several black and white ones, side by side."""
    several = [(image, spread([*own], _SAMPLE)) for image, own in masks.items() if len(own) > 1]
    numbered = [any(map(str.isdigit, words)) for own in masks.values() for words in own.values()]
    if len(several) < _SOME * len(masks) or sum(numbered) < (1 - _SOME) * len(numbered):
        return False
    return bool(several) and _are_apart(spread(several, _SAMPLE))


def _are_apart(groups: Sequence[tuple[Path, list[Path]]]) -> bool:
    """Whether masks have one value beside 0, and those of an image hardly overlap."""
    values: set[int] = set()
    areas = joined = 0
    for image, masks in groups:
        pictures = [read_thinned(file, _SIDE) for file in (image, *masks)]
        if any(pixels is None or pixels.shape != pictures[0].shape for pixels in pictures):
            continue  # which reading reports
        shown, *drawn = map(indices_of, pictures)
        values.update(*(np.unique(pixels).tolist() for pixels in drawn))
        areas += sum(map(np.count_nonzero, drawn))
        joined += np.count_nonzero(np.any(drawn, axis=0))
        if len(np.unique(shown)) <= 2:  # a mask, too
            return False
    return len(values) == 2 and 0 in values and joined > _APART * areas


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    labels, masks = collector.labels, _in_folders(tree)
    if masks:
        labels.aside = {file for own in masks.values() for file in own}
    else:
        masks = set_masks_aside(collector).every
    classes = _classes(masks)
    for name in sorted(set(classes.values())):
        labels.add_class(name)
    splits = splits_in_folders(tree, masks)
    images = [i for path in masks if (i := collector.image(path, path, splits[path])) is not None]
    found = on_threads(
        lambda image: [_of_file(file, image, classes[file]) for file in masks[image.path]],
        images,
        'Reading',
    )

    def usable(image: LabelledImage, results: list) -> Iterator[LabelledObject]:
        for file, (item, *why) in zip(masks[image.path], results, strict=True):
            if item is None:
                labels.report(file, *why)
            else:
                yield item

    for image, results in zip(images, found, strict=True):
        collector.add(image.path, image, usable(image, results))
    labels = collector.finish()
    _note_inverted(labels)
    return labels


def _note_inverted(labels: Labels) -> None:
    """Note masks that are probably white where no object is."""
    every = [(item.box, image.size) for image in labels.images for item in image.objects]
    whole = sum(box[2:] == size for box, size in every)
    if whole * 2 > len(every):
        labels.notes.append(
            f'warning: {whole:,} of {counted(len(every), "object")} reach from edge to edge of '
            'their images: are black and white swapped in the masks?'
        )


def _in_folders(tree: Tree) -> Masks:
    """The masks of each image in masks/NAME, or in masks beside one image; empty if few have two.

    Names such as square_0 have a class; those of random letters and digits have none.
    """
    folders = grouped((image.parent, image) for image in tree.images)
    in_masks = {folder for folder in folders if _is_masks(folder) or _is_masks(folder.parent)}
    images = [path for folder in folders.keys() - in_masks for path in folders[folder]]
    beside = grouped((path.parent.parent, path) for path in images)
    named = finder(grouped((nfc(path.stem), path) for path in images))
    masks: Masks = {}
    for folder in sorted(in_masks):
        # <x>/images/NAME.png and <x>/masks/..., or images/NAME.png and masks/NAME/...
        owners = beside.get(folder.parent) if _is_masks(folder) else named(folder.name)
        owners = owners or []
        owners = [o for o in owners if tree.split_of(o) == tree.split_of(folder)] or owners
        if owners and tree.are_copies(owners):
            masks[owners[0]] = {file: _own_words(file, owners[0]) for file in folders[folder]}
    own = [words for of_image in masks.values() for words in of_image.values()]
    if len(own) <= len(masks):  # one mask for each image would be a class mask
        return {}
    if any(sum(map(str.isdigit, words)) > _NUMBERS for words in own):
        return {image: dict.fromkeys(of_image, ()) for image, of_image in masks.items()}
    return masks


def _own_words(mask: Path, image: Path) -> Words:
    words, of_image = words_of(mask.stem), words_of(image.stem)
    return words[len(of_image) :] if words[: len(of_image)] == of_image else words


def _classes(masks: Masks) -> dict[Path, str]:
    """The class of each mask: its own words without a number, or else those of its folder."""
    own = {mask: words for of_image in masks.values() for mask, words in of_image.items()}
    names = _as_written({mask: mask.stem for mask in own}, own)
    if not any(names.values()):
        images = grouped((mask.parent, image) for image, found in masks.items() for mask in found)
        folders = {mask: mask.parent.name for mask in own if len(set(images[mask.parent])) > 1}
        words = {mask: words_of(name) for mask, name in folders.items()}
        names |= _as_written(folders, words) if len(set(words.values())) > 1 else {}
    return {mask: name or ONLY_CLASS for mask, name in names.items()}


def _as_written(texts: Mapping[Path, str], words: Mapping[Path, Words]) -> dict[Path, str]:
    """The words of each class as a text has them, without a number and words for masks."""
    shared = set.intersection(*map(set, words.values()))
    found = {}
    for mask, text in texts.items():
        left = [w for w in words[mask] if not (w in shared and is_of_masks(w))]
        if left and left[-1].isdigit():
            left = left[:-1]
        elif left and left[0].isdigit():
            left = left[1:]
        match = re.search(r'[\W_]*'.join(map(re.escape, left)), nfc(text), re.IGNORECASE)
        found[mask] = match[0] if match else ' '.join(left)
    return found


def _is_masks(folder: Path) -> bool:
    return folder.name.casefold() in _FOLDERS


def _of_file(
    file: Path, image: LabelledImage, label: str
) -> tuple[LabelledObject | None, str, str]:
    """The object of a mask file; None, and what is wrong, if it cannot be used."""
    try:
        with Image.open(file, formats=DECODERS) as stored:
            noise = BLURRED if stored.format == 'JPEG' else 0
            pixels = np.asarray(stored.convert('L'))
    except Exception as error:  # decoders may raise anything
        return None, NOT_READABLE.what, why_unreadable(error)
    inside = pixels > max(pixels.max(initial=0) // 2, noise)
    if sizes := other_size(inside, image):
        return None, OF_OTHER_SIZE.what, sizes
    if not inside.any():
        return None, EMPTY.what, ''
    return from_pixels(label, inside), '', ''


FORMAT = Format(
    __name__,
    title='One mask file for each object',
    looks_for=(
        'masks/NAME/ with several images next to images/NAME.png, masks/ next to one image, or '
        'several masks named NAME_CLASS_NUMBER.png'
    ),
    tasks=('instance', 'detection', 'semantic'),
    order=200,
    find=_find,
    read=_read,
    find_any=_find_any,
    signs=Signs.MASKS,
    note=(
        'Masks may also be `CLASS/NAME_NUMBER.png`; named like this, they must be black and white '
        'and not overlap. The class is the word in the name of the mask, otherwise `object`. '
        '`--format object-masks` reads all masks of each image, whatever their names. `--task '
        'semantic` draws them as class masks, with a background.'
    ),
)
