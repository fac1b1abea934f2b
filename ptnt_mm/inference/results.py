"""The output folder of inference: drawn pictures, and a JSON file."""

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

from ptnt_mm.data.predictions import DRAWN, FILE, FORMAT, is_predictions
from ptnt_mm.utils.atomic_files import remove_partials, write_atomically
from ptnt_mm.utils.errors import UserError

_COUNTED = {'detections', 'classes'}
"""Values of an image that depend on its scores."""


class Results:
    """Results of one run, gathered for the JSON file of its folder.

    Args:
        folder: The folder; it need not exist.
        overwrite: Replace the results of an earlier run, finished or killed.

    Attributes:
        file: The JSON file.
        drawn: The folder of pictures.
        found: Results, one JSON text per image.
        failed: Failures, one JSON text per image.
        counts: The numbers of 'detections' or 'classes', one per image; empty for segmenters.

    Raises:
        UserError: if there are results that may not be replaced, or files of the same names that
            are not results.
    """

    def __init__(self, folder: Path, overwrite: bool):
        self.file, self.drawn = folder / FILE, folder / DRAWN
        # As text, which takes less memory: a webcam may run for hours.
        self.found: list[str] = []
        self.failed: list[str] = []
        self.counts: dict[str, list[int]] = defaultdict(list)
        if folder.exists() and not folder.is_dir():
            raise UserError(f'{folder} is not a folder: choose another `out`')
        if not self.file.exists() and not self.drawn.exists():
            return
        if not is_predictions(self.file):
            raise UserError(
                f'{folder} contains a {self.file.name} or {self.drawn.name} that is not from this '
                'tool: choose another `out`, or move them away'
            )
        if not overwrite:
            raise UserError(
                f'{folder} contains results of an earlier run: choose another `out`, or pass '
                '`overwrite=True`'
            )

    def prepare(self) -> None:
        """Create the folder, and remove the results of an earlier run, or raise a UserError.

        The JSON file is written now, without images, to mark the folder as ours in case this
        process is killed.
        """
        folder = self.file.parent
        self.write(format=FORMAT, finished=False)
        try:
            remove_partials(folder)
            if self.drawn.exists():
                shutil.rmtree(self.drawn)
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f'{self.drawn} cannot be removed: {reason}') from error

    def add(self, **entry: Any) -> None:
        """Add an image."""
        for kind in _COUNTED & entry.keys():
            self.counts[kind].append(len(entry[kind]))
        self.found.append(json.dumps(entry))

    def fail(self, file: str, reason: str) -> None:
        """Add an image that failed."""
        self.failed.append(json.dumps(dict(file=file, reason=reason)))

    def write(self, **about: Any) -> None:
        """Write the file: facts about the whole run, then one image per line."""
        parts = [f'{json.dumps(key)}: {json.dumps(value)}' for key, value in about.items()]
        for key, entries in (('images', self.found), ('failed', self.failed)):
            lines = ',\n '.join(entries)
            parts.append(f'"{key}": [\n {lines}\n]' if entries else f'"{key}": []')
        write_atomically(self.file, '{\n' + ',\n'.join(parts) + '\n}\n')
