"""The folder that results are written to: drawn pictures, and a JSON file."""

import json
import shutil
from pathlib import Path
from typing import Any

from ptnt_mm.utils.atomic_files import write_whole
from ptnt_mm.utils.errors import UserError

FORMAT = 'ptnt_mm predictions 1'
"""To be raised by whoever changes what the keys of the file mean."""


class Results:
    """What one run found, gathered for the JSON file of its folder.

    Args:
        folder: The folder; it need not exist.
        overwrite: Replace what an earlier run left in it.

    Attributes:
        file: The JSON file.
        drawn: The folder of pictures.
        found: An image each, as JSON.
        failed: An image each that could not be read or looked at, as JSON.

    Raises:
        UserError: if there are results that may not be replaced, or files of the same names that
            are not results.
    """

    def __init__(self, folder: Path, overwrite: bool):
        self.file, self.drawn = folder / 'predictions.json', folder / 'drawn'
        # As text, which takes less memory: a webcam may run for hours.
        self.found: list[str] = []
        self.failed: list[str] = []
        if folder.exists() and not folder.is_dir():
            raise UserError(f'{folder} is not a folder: choose another --out')
        if not self.file.exists() and not self.drawn.exists():
            return
        if not _is_ours(self.file):
            raise UserError(
                f'{folder} holds a {self.file.name} or {self.drawn.name} that is not of this '
                'tool: choose another --out, or move them away'
            )
        if not overwrite:
            raise UserError(
                f'{folder} holds results of an earlier run: choose another --out, or give '
                '--overwrite'
            )

    def prepare(self) -> None:
        """Make the folder, and throw away what an earlier run left, or raise a UserError."""
        folder = self.file.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.file.unlink(missing_ok=True)
            if self.drawn.exists():
                shutil.rmtree(self.drawn)
        except OSError as error:
            raise UserError(f'{folder} cannot be written to: {error.strerror}') from error

    def add(self, **entry: Any) -> None:
        """Add an image."""
        self.found.append(json.dumps(entry))

    def fail(self, file: str, reason: str) -> None:
        """Add an image that could not be read or looked at."""
        self.failed.append(json.dumps(dict(file=file, reason=reason)))

    def write(self, **about: Any) -> None:
        """Write the file, one image a line, behind what is said of the whole run."""
        parts = [f'{json.dumps(key)}: {json.dumps(value)}' for key, value in about.items()]
        for key, entries in (('images', self.found), ('failed', self.failed)):
            lines = ',\n '.join(entries)
            parts.append(f'"{key}": [\n {lines}\n]' if entries else f'"{key}": []')
        write_whole(self.file, '{\n' + ',\n'.join(parts) + '\n}\n')


def _is_ours(file: Path) -> bool:
    try:
        return json.loads(file.read_text(encoding='utf-8'))['format'] == FORMAT
    except (OSError, ValueError, KeyError, TypeError):
        return False
