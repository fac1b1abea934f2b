"""Write the demo data set's folder: completely or not at all, and never over foreign files.

annotations/instances_{train,val}.json   COCO detection
{train,val}/000001.jpg ...               pictures
semantic/{train,val}/000001.png ...      class of each pixel: 0 background, then category ids
meta.json                                arguments, class names and colours, list of all files
"""

import errno
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ptnt_mm.utils.atomic_files import folder_written_atomically
from ptnt_mm.utils.colours import PALETTE as COLOURS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.progress import watched
from ptnt_mm.workbench.data.demo import photographs
from ptnt_mm.workbench.data.demo.photographs import SPLITS, Split
from ptnt_mm.workbench.data.demo.scenes import CLASSES, Scene, compose

# Increase this when any pixel of the output changes, so that existing folders count as outdated.
VERSION = 2
GENERATOR = 'ptnt_mm demo data'
META = 'meta.json'

# Colours of the semantic maps: black for background, then CLASSES.
PALETTE = ((0, 0, 0), *COLOURS[: len(CLASSES)])

_JPEG_QUALITY = 92
# Measured: 37 kB for one picture with its semantic map and polygons.
_BYTES_PER_IMAGE = 50_000


@dataclass(frozen=True)
class DemoSpec:
    """Everything that determines the data set.

    Attributes:
        train: Number of training pictures, at least 1.
        val: Number of validation pictures, at least 1.
        seed: Seed of every random choice, at least 0.
    """

    train: int = 240
    val: int = 60
    seed: int = 0

    def __str__(self) -> str:
        return (
            f'{self.train} train and {self.val} val pictures, seed {self.seed}, '
            f'classes {", ".join(CLASSES)}'
        )


def make_demo_data(folder: Path, spec: DemoSpec, overwrite: bool = False) -> str:
    """Create the data set in `folder`, or do nothing if it is already there.

    It is built next to `folder` and renamed at the end, so an interrupted run leaves nothing half
    made. Equal specs give equal bytes, given equal versions of OpenCV, NumPy and Pillow.

    Args:
        folder: Where to put the data set; created with its parents if missing.
        spec: The size of the data set, and its seed.
        overwrite: Replace a demo data set made with a different spec, or changed since.

    Returns:
        A message of one line.

    Raises:
        UserError: if the folder contains something else, cannot be written to or is out of space,
            or if the photographs are not installed.
    """
    folder = folder.resolve()
    reason = _reason_to_make(folder, spec, overwrite)
    if reason is None:
        return f'{folder} is up to date: {spec}.'
    photographs.folder()  # fails early if scikit-image is missing
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        needed = (spec.train + spec.val) * _BYTES_PER_IMAGE
        if shutil.disk_usage(folder.parent).free < needed:
            raise OSError(errno.ENOSPC, f'about {needed / 1e6:.0f} MB are needed')
        with folder_written_atomically(folder) as building:
            _build(building, spec)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise UserError(
                f'There is no space left for {folder} ({error.strerror}). Free some space, or '
                'choose another folder.'
            ) from error
        where = f' ({error.filename})' if error.filename else ''
        raise UserError(
            f'{folder} cannot be written: {error.strerror}{where}. Choose another folder: '
            'tools/make_demo_data.py FOLDER'
        ) from error
    return f'{reason} {folder}: {spec}.'


def _reason_to_make(folder: Path, spec: DemoSpec, overwrite: bool) -> str | None:
    """Return the start of the closing message, or None if the data set is up to date."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return 'Made'
    meta = _read_meta(folder)
    found, expected = _files(folder), meta['files']
    missing = [name for name in expected if name not in found]
    changed = [name for name, size in expected.items() if found.get(name, size) != size]
    same_spec = meta['version'] == VERSION and meta['arguments'] == asdict(spec)
    if same_spec and not missing and not changed:
        return None
    foreign = sorted(found.keys() - expected.keys() - {META})
    if foreign:
        raise UserError(
            f'{folder} contains an outdated or changed demo data set and {len(foreign)} file(s) '
            f'that were added to it, for example {foreign[0]}. Move them away, or choose another '
            'folder.'
        )
    if overwrite:
        return 'Overwrote'
    if not same_spec:
        raise UserError(
            f'{folder} contains a demo data set made with {meta["arguments"]} (version '
            f'{meta["version"]}); you asked for {asdict(spec)} (version {VERSION}). Pass '
            '`overwrite=True` to replace it, or choose another folder.'
        )
    if changed:
        raise UserError(
            f'{len(changed)} file(s) of {folder} have changed since it was made, for example '
            f'{changed[0]}. Pass `overwrite=True` to replace it, or choose another folder.'
        )
    return f'{len(missing)} file(s) were missing, for example {missing[0]}. Remade'


def _read_meta(folder: Path) -> dict[str, Any]:
    """Read the marker file that an earlier run left in the folder."""
    try:
        meta = json.loads((folder / META).read_text())
        if meta['generator'] == GENERATOR:
            return {key: meta[key] for key in ('version', 'arguments', 'files')}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise UserError(
        f'{folder} exists and is not a demo data set: it has no {META} of "{GENERATOR}". Nothing '
        'was changed; choose another folder, or move this one away.'
    )


def _files(folder: Path) -> dict[str, int]:
    """List all files below a folder, with their sizes in bytes."""
    return {
        path.relative_to(folder).as_posix(): path.lstat().st_size
        for path in sorted(folder.rglob('*'))
        if not path.is_dir()
    }


def _build(folder: Path, spec: DemoSpec) -> None:
    for split in SPLITS:
        for part in (split, f'semantic/{split}', 'annotations'):
            (folder / part).mkdir(parents=True, exist_ok=True)
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        count = getattr(spec, split)
        for number in watched(range(1, count + 1), count, f'Composing {split:<5} pictures'):
            scene = compose(spec.seed, split, number)
            images.append(_write_image(folder, split, number, scene))
            annotations += objects_of(scene, number, len(annotations) + 1)
        content = dict(
            info=dict(description=f'{GENERATOR}, {split}', version=str(VERSION)),
            licenses=[photographs.LICENSE],
            images=images,
            annotations=annotations,
            categories=[
                dict(id=number, name=name, supercategory='thing')
                for number, name in enumerate(CLASSES, start=1)
            ],
        )
        file = folder / 'annotations' / f'instances_{split}.json'
        file.write_text(json.dumps(content) + '\n')
    (folder / META).write_text(json.dumps(_meta(folder, spec), indent=1) + '\n')


def _write_image(folder: Path, split: Split, number: int, scene: Scene) -> dict[str, Any]:
    """Write a picture and its semantic map; return its entry for the annotation file."""
    name = f'{number:06d}'
    bgr = cv2.cvtColor(scene.image, cv2.COLOR_RGB2BGR)
    quality = [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY]
    _encode(folder / split / f'{name}.jpg', bgr, quality)
    class_of_owner = np.array([0, *(label + 1 for label in scene.labels)], np.uint8)
    _encode(folder / 'semantic' / split / f'{name}.png', class_of_owner[scene.owner], [])
    height, width = scene.owner.shape
    return dict(id=number, file_name=f'{name}.jpg', width=width, height=height, license=1)


def _encode(path: Path, pixels: np.ndarray, options: list[int]) -> None:
    # On a full disk `cv2.imwrite` only returns False; writing the bytes raises the real error.
    path.write_bytes(cv2.imencode(path.suffix, pixels, options)[1].tobytes())


def _meta(folder: Path, spec: DemoSpec) -> dict[str, Any]:
    return dict(
        generator=GENERATOR,
        version=VERSION,
        arguments=asdict(spec),
        about='Objects on photographs for trying a detector out, made by tools/make_demo_data.py. '
        'annotations/ is in COCO format, with the boxes, areas and polygons of what is visible. '
        'semantic/ holds one 8-bit image per picture; a pixel is 0 for background or the '
        'category_id of the object that it shows; no value means "ignore". '
        'semantic_classes and semantic_palette (RGB) are listed in the order of these values.',
        semantic_classes=['background', *CLASSES],
        semantic_palette=PALETTE,
        license=photographs.LICENSE,
        files=_files(folder),
    )


def objects_of(scene: Scene, image_id: int, first_id: int) -> list[dict[str, Any]]:
    """Describe the objects of one scene: visible polygons, tight box, area in pixels."""
    masks = [scene.owner == number for number in range(1, len(scene.labels) + 1)]
    return [
        dict(
            id=first_id + i,
            image_id=image_id,
            category_id=label + 1,
            segmentation=list(polygons(mask)),
            area=int(mask.sum()),
            bbox=list(cv2.boundingRect(mask.astype(np.uint8))),
            iscrowd=0,
        )
        for i, (label, mask) in enumerate(zip(scene.labels, masks, strict=True))
    ]


def polygons(mask: np.ndarray) -> Iterator[list[float]]:
    """Outline a mask (H, W) bool as flat [x, y, x, y, ...] lists in pixels.

    When pycocotools rasterises them, they cover exactly the mask. COCO polygons cannot have holes,
    so a piece with a hole is cut in two through the hole.
    """
    count, pieces = cv2.connectedComponents(mask.astype(np.uint8), connectivity=8)
    for number in range(1, count):
        piece = (pieces == number).astype(np.uint8)
        # At twice the size, the contour runs a quarter of a pixel inside the true edge. So every
        # pixel centre is clearly inside or outside, and even a single pixel becomes a polygon.
        doubled = piece.repeat(2, axis=0).repeat(2, axis=1)
        contours, _ = cv2.findContours(doubled, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        filled = cv2.drawContours(np.zeros_like(doubled), contours, 0, 1, cv2.FILLED)
        holes = np.flatnonzero((filled > doubled)[:, ::2].any(axis=0))
        if not len(holes):
            yield ((contours[0].reshape(-1) + 0.5) / 2).tolist()
            continue
        column = holes[len(holes) // 2]
        for side in (np.s_[:, :column], np.s_[:, column:]):
            half = np.zeros_like(piece)
            half[side] = piece[side]
            yield from polygons(half)
