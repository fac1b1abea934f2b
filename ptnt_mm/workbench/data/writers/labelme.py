"""LabelMe's JSON: a file for each image."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.workbench.data.formats import labelme
from ptnt_mm.workbench.data.labels import LabelledImage, LabelledObject
from ptnt_mm.workbench.data.writer import Writer

_VERSION = '5.5.0'  # the first whose files have these keys


def _write(_: Sequence[str], images: Sequence[LabelledImage], root: Path, folder: Path) -> None:
    """Write a file for each image, with the path to it from there."""
    for image in images:
        file = folder / image.path.relative_to(root).with_suffix('.json')
        groups = enumerate(image.objects, start=1)
        width, height = image.size
        content = dict(
            version=_VERSION,
            flags={},
            shapes=[shape for number, item in groups for shape in _shapes(item, number)],
            imagePath=Path(os.path.relpath(image.path, file.parent)).as_posix(),
            imageData=None,
            imageHeight=height,
            imageWidth=width,
        )
        write_atomically(file, json.dumps(content, ensure_ascii=False, indent=2))


def _shapes(item: LabelledObject, number: int) -> Iterator[dict[str, Any]]:
    """A rectangle, or the parts of a mask, which are one object by the number of their group.

    LabelMe shows the description of a shape, which is the only place for a score.
    """
    polygons = item.segmentation or []
    common = dict(
        label=item.label,
        group_id=number if len(polygons) > 1 else None,
        description='' if item.score is None else f'score {item.score:g}',
        flags={},
    )
    for points in polygons:
        pairs = list(map(list, zip(points[::2], points[1::2], strict=True)))
        yield common | dict(shape_type='polygon', points=pairs)
    if not polygons:
        left, top, width, height = item.box
        points = [[left, top], [round(left + width, 2), round(top + height, 2)]]
        yield common | dict(shape_type='rectangle', points=points)


WRITER = Writer(
    labelme.FORMAT,
    write=_write,
    files='`NAME.json` for each image, with the path to the image',
    scores='`description` of each shape',
    masks='polygons; parts of an object have one `group_id`',
)
