"""COCO's JSON: one file for all images."""

import json
from collections.abc import Sequence
from pathlib import Path

from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.workbench.data.formats import coco
from ptnt_mm.workbench.data.labels import LabelledImage
from ptnt_mm.workbench.data.masks import area
from ptnt_mm.workbench.data.writer import Writer


def write_file(
    file: Path, classes: Sequence[str], images: Sequence[LabelledImage], root: Path, masks: bool
) -> None:
    """Write a file of objects.

    Args:
        file: The JSON file.
        classes: The names of the classes; ids count from 1.
        images: The images with their objects. A score is written as in COCO's files of results.
        root: The folder that the names of the images are relative to.
        masks: Whether to write the masks of the objects, and not only their boxes.

    Raises:
        UserError: if the file cannot be written.
    """
    ids = {name: i for i, name in enumerate(classes, start=1)}
    entries, annotations = [], []
    for image_id, image in enumerate(images, start=1):
        name = image.path.relative_to(root).as_posix()
        width, height = image.size
        entry = dict(id=image_id, file_name=name, width=width, height=height)
        entries.append(entry | (dict(tile_of=image.tile_of) if image.tile_of else {}))
        for item in image.objects:
            annotation = dict(
                id=len(annotations) + 1,
                image_id=image_id,
                category_id=ids[item.label],
                bbox=[round(value, 2) for value in item.box],
                area=round(area(item, image.size), 2),
                iscrowd=int(bool(item.ignored)),
            )
            if masks and item.segmentation is not None:
                annotation['segmentation'] = item.segmentation
            if item.score is not None:
                annotation['score'] = item.score
            annotations.append(annotation)
    categories = [dict(id=i, name=name) for name, i in ids.items()]
    content = dict(images=entries, annotations=annotations, categories=categories)
    write_atomically(file, json.dumps(content, ensure_ascii=False))


def _write(
    classes: Sequence[str], images: Sequence[LabelledImage], root: Path, folder: Path
) -> None:
    write_file(folder / 'annotations.json', classes, images, root, masks=True)


WRITER = Writer(
    coco.FORMAT,
    write=_write,
    files='`annotations.json`',
    scores='`score` of each annotation',
    masks='polygons',
)
