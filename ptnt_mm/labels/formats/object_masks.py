"""One mask file for each object, in a folder of masks for each image."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.labels.formats.format import Collector, Format
from ptnt_mm.labels.masks import from_pixels
from ptnt_mm.labels.model import LabelledImage, LabelledObject, Labels
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.decoding import DECODERS, why_unreadable
from ptnt_mm.utils.many_files import on_threads
from ptnt_mm.utils.text import counted

_MASKS = ('masks', 'mask', 'instances', 'labels')
_CLASS = 'object'


def _find(tree: Tree) -> str:
    masks = _masks(tree)
    total = sum(map(len, masks.values()))
    # One mask for each image would be a class mask.
    if total <= len(masks):
        return ''
    images = counted(len(masks), 'image')
    return f'{images} with a folder of masks each, {counted(total, "mask")}'


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    masks = _masks(tree)
    images = [(path, collector.image(path, path)) for path in masks]
    sized = [image for _, image in images if image is not None]
    collector.labels.add_class(_CLASS)
    found = on_threads(lambda image: list(_objects(image, masks[image.path])), sized, 'Reading')
    for image, results in zip(sized, found, strict=True):
        collector.add(image.path, image, _usable(collector.labels, results))
    collector.labels.aside = {file for files in masks.values() for file in files}
    return collector.finish()


def _usable(
    labels: Labels, results: list[tuple[Path, LabelledObject | str]]
) -> Iterator[LabelledObject]:
    """The objects among the results; the others are reported."""
    for file, result in results:
        if isinstance(result, str):
            labels.report(file, 'object masks that cannot be used', result)
        else:
            yield result


def _masks(tree: Tree) -> dict[Path, list[Path]]:
    """The mask files of each image: in masks/NAME next to images, or in masks next to one image."""
    folders: dict[Path, list[Path]] = {}
    for image in tree.images:
        folders.setdefault(image.parent, []).append(image)
    in_masks = {folder for folder in folders if _is_masks(folder) or _is_masks(folder.parent)}
    images = {path for folder in folders.keys() - in_masks for path in folders[folder]}
    beside: dict[Path, list[Path]] = {}
    named: dict[str, list[Path]] = {}
    for path in images:
        beside.setdefault(path.parent.parent, []).append(path)
        named.setdefault(path.stem, []).append(path)
    masks = {}
    for folder in sorted(in_masks):
        # <x>/images/NAME.png and <x>/masks/..., or images/NAME.png and masks/NAME/...
        owners = beside.get(folder.parent, []) if _is_masks(folder) else named.get(folder.name, [])
        if len(owners) == 1:
            masks[owners[0]] = folders[folder]
    return masks


def _is_masks(folder: Path) -> bool:
    return folder.name.casefold() in _MASKS


def _objects(
    image: LabelledImage, files: list[Path]
) -> Iterator[tuple[Path, LabelledObject | str]]:
    """The object of each mask file, or why it cannot be used."""
    for file in files:
        try:
            with Image.open(file, formats=DECODERS) as stored:
                pixels = np.asarray(stored.convert('L'))
        except Exception as error:  # decoders may raise anything
            yield file, why_unreadable(error)
            continue
        inside = pixels > (127 if pixels.max(initial=0) > 1 else 0)
        if inside.shape[::-1] != image.size:
            yield file, f'it has {inside.shape[1]} x {inside.shape[0]} pixels, not {image.size}'
        elif not inside.any():
            yield file, 'it is empty'
        else:
            mask, box = from_pixels(inside)
            yield file, LabelledObject(_CLASS, box, mask)


FORMAT = Format(
    'object-masks',
    'One mask file for each object',
    'masks/NAME/ with several images next to images/NAME.png, or masks/ next to one image',
    ('instance', 'detection', 'semantic'),
    _find,
    _read,
)
