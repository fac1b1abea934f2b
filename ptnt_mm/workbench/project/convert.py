"""Write labels in the formats of the hosts: COCO's JSON, index masks, or lists with classes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, first_few
from ptnt_mm.workbench.data.class_masks import IGNORED, read_values, save_mask, write_names
from ptnt_mm.workbench.data.labels import LabelledImage, Labels, counted_classes
from ptnt_mm.workbench.data.many_files import on_threads
from ptnt_mm.workbench.data.masks import BACKGROUND, draw_mask, with_rectangle
from ptnt_mm.workbench.data.writers.coco import write_file

Splits = Mapping[str, Sequence[LabelledImage]]
Roots = Mapping[str, Path]


def convert(
    labels: Labels, splits: Splits, task: str, roots: Roots, folder: Path
) -> tuple[str, ...]:
    """Write the labels of all splits into a folder.

    Args:
        labels: The classes; omissions are added to its problems.
        splits: The images of each split.
        task: The task, one of ``labels.TASKS``.
        roots: The folder that the names of a split's images are relative to.
        folder: Output folder.

    Returns:
        The names of the classes, in the order of their labels.

    Raises:
        UserError: if the classes do not fit, or a file cannot be written.
    """
    return _WRITERS[task](labels, splits, roots, folder)


def _boxes(labels: Labels, splits: Splits, roots: Roots, folder: Path) -> tuple[str, ...]:
    for split, images in splits.items():
        write_file(folder / f'{split}.json', labels.classes, images, roots[split], masks=False)
    return tuple(labels.classes)


def _objects(labels: Labels, splits: Splits, roots: Roots, folder: Path) -> tuple[str, ...]:
    for split, images in _with_masks(labels, splits).items():
        write_file(folder / f'{split}.json', labels.classes, images, roots[split], masks=True)
    return tuple(labels.classes)


def _with_masks(labels: Labels, splits: Splits) -> Splits:
    """The images with a mask for each object: the rectangle of those that have only a box.

    Without it, such an object would be learned as background.
    """
    every = [item for images in splits.values() for image in images for item in image.objects]
    boxes = [item.label for item in every if item.segmentation is None]
    if boxes:
        labels.notes.append(
            f'{counted(len(boxes), "object")} without a mask, whose box is used as one: '
            f'{counted_classes(boxes)}'
        )
    return {
        split: [
            replace(image, objects=tuple(map(with_rectangle, image.objects))) for image in images
        ]
        for split, images in splits.items()
    }


def _pixels(labels: Labels, splits: Splits, roots: Roots, folder: Path) -> tuple[str, ...]:
    """Masks of class indices; objects are drawn over a background."""
    has_masks = any(image.mask for images in splits.values() for image in images)
    classes = tuple(labels.classes) if has_masks else (BACKGROUND, *labels.classes)
    if not 1 < len(classes) <= IGNORED or len(set(classes)) < len(classes):
        raise UserError(
            f'{counted(len(classes), "class")}, {first_few(classes)}: masks can hold '
            f'2 to {IGNORED} classes, each with its own name'
        )
    if not has_masks:
        splits = _with_masks(labels, splits)
    indices = {name: index for index, name in enumerate(classes)}

    def write(image: LabelledImage, root: Path) -> None:
        name = image.path.relative_to(root).as_posix()
        if image.mask is not None:
            pixels = _class_indices(read_values(image.mask), labels.mask_indices)
        else:
            pixels = _drawn(image, indices)
        save_mask(pixels, len(classes), folder / 'masks' / f'{name}.png')

    for split, images in splits.items():
        root = roots[split]
        list(on_threads(partial(write, root=root), images, f'Writing {split} masks'))
        names = (_line_of_list(image, root) for image in images)
        write_atomically(folder / f'{split}.txt', '\n'.join(names) + '\n')
    write_names(folder / 'masks', classes)
    return classes


def _drawn(image: LabelledImage, indices: Mapping[str, int]) -> np.ndarray:
    """The class of each pixel, (H, W) uint8, of an image with object masks."""
    entry = dict(width=image.size[0], height=image.size[1], file_name=image.path.name)
    annotations = [
        dict(
            id=i,
            category_id=item.label,
            segmentation=item.segmentation,
            iscrowd=bool(item.ignored),
        )
        for i, item in enumerate(image.objects)
    ]
    return draw_mask(entry, annotations, indices)


def _class_indices(pixels: np.ndarray, index_of: Mapping[int, int]) -> np.ndarray:
    """The class index of each pixel, (H, W) values -> (H, W) uint8; other values are ignored."""
    values = np.array(sorted(index_of), np.int64)
    indices = np.array([index_of[value] for value in values.tolist()], np.uint8)
    places = np.searchsorted(values, pixels).clip(max=len(values) - 1)
    return np.where(values[places] == pixels, indices[places], IGNORED).astype(np.uint8)


def _images(labels: Labels, splits: Splits, roots: Roots, folder: Path) -> tuple[str, ...]:
    """Write a list for each split, with a path and the index of its class on each line."""
    numbers = {name: number for number, name in enumerate(labels.classes)}
    if len(numbers) < 2:
        raise UserError(
            f'there is only one class, {labels.classes[0]}: a classifier needs two or more'
        )
    for split, images in splits.items():
        lines = (f'{_line_of_list(image, roots[split])} {numbers[image.label]}' for image in images)
        write_atomically(folder / f'{split}.txt', '\n'.join(lines) + '\n')
    return tuple(labels.classes)


def _line_of_list(image: LabelledImage, root: Path) -> str:
    """The name of an image in a list, from whose lines the hosts remove spaces at the beginning."""
    name = image.path.relative_to(root).as_posix()
    return f'./{name}' if name.startswith(' ') else name


_WRITERS = {
    'detection': _boxes,
    'instance': _objects,
    'semantic': _pixels,
    'classification': _images,
}
