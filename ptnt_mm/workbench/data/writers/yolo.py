"""YOLO's text files, and settings for ultralytics and darknet."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml

from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.workbench.data.formats import yolo
from ptnt_mm.workbench.data.labels import LabelledImage, LabelledObject
from ptnt_mm.workbench.data.writer import Writer


def _write(
    classes: Sequence[str], images: Sequence[LabelledImage], root: Path, folder: Path
) -> None:
    """Write a data set without its images: add them as ``images``, with their subfolders.

    Darknet's and ultralytics' files have no place for a score: a sixth number is an error in both.
    """
    numbers = {name: number for number, name in enumerate(classes)}
    names = [image.path.relative_to(root) for image in images]
    for image, name in zip(images, names, strict=True):
        lines = (f'{_line(numbers, item, *image.size)}\n' for item in image.objects)
        write_atomically(folder / 'labels' / name.with_suffix('.txt'), ''.join(lines))
    write_atomically(folder / 'classes.txt', ''.join(f'{name}\n' for name in classes))
    listed = (f'images/{name.as_posix()}\n' for name in names)
    write_atomically(folder / 'train.txt', ''.join(listed))
    # Ultralytics refuses settings without val; ptnt new divides the images itself.
    settings = dict(path='.', train='train.txt', val='train.txt', names=dict(enumerate(classes)))
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
    write_atomically(folder / 'data.yaml', text)


def _line(numbers: Mapping[str, int], item: LabelledObject, width: int, height: int) -> str:
    if item.segmentation:
        values = _joined([np.reshape(points, (-1, 2)) for points in item.segmentation]).ravel()
    else:
        x, y, w, h = item.box
        values = (x + w / 2, y + h / 2, w, h)
    shares = (value / (height if i % 2 else width) for i, value in enumerate(values))
    return ' '.join([str(numbers[item.label]), *(f'{min(max(x, 0), 1):.6g}' for x in shares)])


def _joined(polygons: list[np.ndarray]) -> np.ndarray:
    """One polygon, (N, 2), for all parts of an object, as a line has room for only one.

    Lines without width, there and back, lead to each part from its nearest point.
    """
    joined, *others = polygons
    for other in others:
        distances = np.linalg.norm(joined[:, None] - other[None], axis=2)
        here, there = np.unravel_index(distances.argmin(), distances.shape)
        around = np.roll(other, -there, axis=0)
        joined = np.concatenate((joined[: here + 1], around, around[:1], joined[here:]))
    return joined


WRITER = Writer(
    yolo.FORMAT,
    write=_write,
    files=(
        '`data.yaml`, `train.txt`, `classes.txt`, and `labels/NAME.txt` for each image; a data set '
        'without its images'
    ),
    scores='no place',
    masks='one polygon for each object, whose parts are joined by lines without width',
)
