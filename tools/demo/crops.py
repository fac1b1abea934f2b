"""Cut out the demo set's objects: pictures for a classifier, in folders of their classes.

{train,val}/{ball,coin,crate,cup}/000001_1.jpg ...   number of the picture, number of the object
meta.json                                            what they were made from
"""

import json
from pathlib import Path
from typing import Any

from PIL import Image

from ptnt_mm.utils.atomic_files import folder_written_atomically, sha256
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.coco import CocoFile, read_coco
from ptnt_mm.workbench.data.demo.photographs import SPLITS

# Increase this when any pixel of the output changes, so that existing folders count as outdated.
VERSION = 1
GENERATOR = 'ptnt_mm demo crops'
META = 'meta.json'

# Sides of an object's square crop, in longer sides of its box.
_ROOM = 1.2
_JPEG_QUALITY = 95


def make_crops(demo: Path, folder: Path, overwrite: bool = False) -> str:
    """Cut every object out of the demo set, or do nothing if the crops exist.

    Args:
        demo: The demo data set.
        folder: Folder of the crops; built next to it and renamed at the end.
        overwrite: Whether to replace crops of another demo set.

    Returns:
        A message of one line.

    Raises:
        UserError: if there is no demo set, or if the folder contains something else.
    """
    files = {split: demo / 'annotations' / f'instances_{split}.json' for split in SPLITS}
    for file in files.values():
        if not file.is_file():
            raise UserError(f'there is no {file}: run python tools/make_demo_data.py {demo}')
    made_from = {split: sha256(file) for split, file in files.items()}
    meta = dict(generator=GENERATOR, version=VERSION, annotations=made_from)
    if _read_meta(folder) == meta:
        return f'{folder} is up to date.'
    _check_folder(folder, overwrite)
    try:
        with folder_written_atomically(folder) as building:
            counts = [_cut(read_coco(files[s]), demo / s, building / s) for s in SPLITS]
            (building / META).write_text(json.dumps(meta, indent=1) + '\n')
    except OSError as error:
        raise UserError(f'{folder} cannot be written: {error.strerror}') from error
    numbers = ' and '.join(f'{n} {split}' for n, split in zip(counts, SPLITS, strict=True))
    return f'Made {folder}: {numbers} pictures of one object each.'


def _cut(file: CocoFile, images: Path, folder: Path) -> int:
    """Write the crops of a split; return their number."""
    for name in file.names.values():
        (folder / name).mkdir(parents=True)
    for annotation in file.annotations:
        source = images / file.images[annotation['image_id']]['file_name']
        crop = folder / file.names[annotation['category_id']] / f'{source.stem}_{annotation["id"]}'
        with Image.open(source) as image:
            square = image.crop(_square(annotation['bbox'], image.size))
            square.save(crop.with_suffix('.jpg'), quality=_JPEG_QUALITY)
    return len(file.annotations)


def _square(box: list[float], size: tuple[int, int]) -> tuple[int, int, int, int]:
    """The square around a box (x, y, width, height), moved into the picture (width, height)."""
    side = round(min(_ROOM * max(box[2:]), *size))
    corner = []
    for start, length, limit in zip(box[:2], box[2:], size, strict=True):
        corner.append(min(max(round(start + length / 2 - side / 2), 0), limit - side))
    left, top = corner
    return left, top, left + side, top + side


def _read_meta(folder: Path) -> Any:
    try:
        return json.loads((folder / META).read_text())
    except (OSError, ValueError):
        return None


def _check_folder(folder: Path, overwrite: bool) -> None:
    """Raise a UserError unless the folder is new, or contains crops that may be replaced."""
    if not folder.exists():
        return
    meta = _read_meta(folder)
    if not isinstance(meta, dict) or meta.get('generator') != GENERATOR:
        raise UserError(
            f'{folder} exists and contains no crops of a demo set: choose another folder'
        )
    if not overwrite:
        raise UserError(
            f'{folder} contains crops of another demo set: pass --overwrite to replace it'
        )
