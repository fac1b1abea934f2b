"""Predictions as label files, which are corrected in an annotation tool."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ptnt_mm.utils.atomic_files import folder_written_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import first_few, unknown_name
from ptnt_mm.workbench.data.labels import LabelledImage, LabelledObject, box_between
from ptnt_mm.workbench.data.masks import outlines
from ptnt_mm.workbench.data.predictions import LABELS
from ptnt_mm.workbench.data.writers import WRITER_NAMES, all_writers


class LabelFiles:
    """The label files of a run, in a folder next to its results.

    Args:
        format: One of :data:`WRITER_NAMES`.
        out: The folder of the results.

    Attributes:
        folder: The folder of the label files.

    Raises:
        UserError: if there is no such format, or if the folder exists: what is in it may have been
            corrected by hand.
    """

    def __init__(self, format: str, out: Path):
        if format not in WRITER_NAMES:
            raise UserError(unknown_name('labels', format, WRITER_NAMES))
        self._writer, self.folder = all_writers()[format], out / LABELS
        if self.folder.exists():
            raise UserError(
                f'{self.folder} exists, and may contain corrected labels: move it away, or choose '
                'another `out`'
            )

    def check_names(self, files: Sequence[Path], root: Path) -> None:
        """Check that each image, given by its path in a folder, can have a label file.

        Raises:
            UserError: if two share one, as ``a.jpg`` and ``a.png`` (COCO has one file for all), or
                if a name is not UTF-8 or has a control character, such as the end of a line.
        """
        if others := [root / file for file in files if not _is_utf8(root / file)]:
            raise UserError(
                f'label files are UTF-8, and these names are not: {first_few(map(str, others))}: '
                'rename the images'
            )
        if others := [file for file in files if re.search(r'[\x00-\x1f\x7f]', str(file))]:
            raise UserError(
                'label files cannot have the control characters in these names: '
                f'{first_few(ascii(str(file)) for file in others)}: rename the images'
            )
        counts = Counter(file.with_suffix('') for file in files)
        shared = [str(file) for file in files if counts[file.with_suffix('')] > 1]
        if shared and (name := self._writer.format.name) != 'coco':
            raise UserError(
                f'`labels={name}` writes one file for each name, and these images share one: '
                f'{first_few(shared)}. Rename them, or use `labels=coco`'
            )

    def write(self, found: Iterable[str], classes: Sequence[str] | None, root: Path) -> str:
        """Write the label files.

        Args:
            found: The results of a detector, one JSON text per image.
            classes: The names of the classes; None for those that occur.
            root: The folder of the images.

        Returns:
            A line about them.

        Raises:
            UserError: if they cannot be written.
        """
        images = [_labelled(json.loads(text), root) for text in found]
        occurring = dict.fromkeys(item.label for image in images for item in image.objects)
        try:
            with folder_written_atomically(self.folder) as building:
                # Relative paths in LabelMe's files stay right: the final folder is beside this one.
                self._writer.write(classes or tuple(occurring), images, root, building)
        except OSError as error:
            raise UserError(f'{self.folder} cannot be written: {error}') from error
        has_masks = any(item.segmentation for image in images for item in image.objects)
        is_lost = has_masks and not self._writer.masks
        without = ', without masks, which it cannot store' if is_lost else ''
        return f'Labels to correct, {self._writer.format.title}: {self.folder}{without}'


def _is_utf8(file: Path) -> bool:
    try:
        str(file).encode()
    except UnicodeEncodeError:
        return False
    return True


def _labelled(entry: dict[str, Any], root: Path) -> LabelledImage:
    objects = tuple(map(_object, entry['detections']))
    return LabelledImage(root / entry['file'], (entry['width'], entry['height']), objects=objects)


def _object(detection: dict[str, Any]) -> LabelledObject:
    mask = detection.get('mask')
    return LabelledObject(
        detection['label'],
        box_between(*detection['box']),
        (outlines(mask) or None) if mask else None,
        score=detection['score'],
    )
