"""The folder that results are written to, and the JSON file in it."""

import json
import shutil
from pathlib import Path
from typing import Any

from ptnt_mm.utils.atomic_files import write_whole
from ptnt_mm.utils.errors import UserError

FORMAT = 'ptnt_mm predictions 1'
"""To be raised by whoever changes what the keys of the file mean."""

_PREDICTIONS = 'predictions.json'
_DRAWN = 'drawn'


class ResultFolder:
    """The folder of one run's results.

    Args:
        path: The folder; it need not exist.
        overwrite: Replace what an earlier run left in it.

    Raises:
        UserError: if there are results that may not be replaced, or files of the same names that
            are not results.
    """

    def __init__(self, path: Path, overwrite: bool):
        self.path = path
        self.predictions = path / _PREDICTIONS
        self.drawn = path / _DRAWN
        if path.exists() and not path.is_dir():
            raise UserError(f'{path} is not a folder: choose another --out')
        if not self.predictions.exists() and not self.drawn.exists():
            return
        if not _is_ours(self.predictions):
            raise UserError(
                f'{path} holds a {_PREDICTIONS} or {_DRAWN} that is not of this tool: choose '
                'another --out, or move them away'
            )
        if not overwrite:
            raise UserError(
                f'{path} holds results of an earlier run: choose another --out, or give --overwrite'
            )

    def prepare(self) -> None:
        """Make it, and throw away what an earlier run left.

        Raises:
            UserError: if the system refuses.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.predictions.unlink(missing_ok=True)
            if self.drawn.exists():
                shutil.rmtree(self.drawn)
        except OSError as error:
            raise UserError(f'{self.path} cannot be written to: {error.strerror}') from error


class Results:
    """What was found, gathered for the JSON file.

    Args:
        about: Of the whole run: JSON values by key.

    Attributes:
        found: An image each, as JSON.
        failed: An image each that could not be read or looked at, as JSON.
    """

    def __init__(self, about: dict[str, Any]):
        self._about = about
        # As text, which takes less memory: a webcam may run for hours.
        self.found: list[str] = []
        self.failed: list[str] = []

    def add(self, entry: dict[str, Any]) -> None:
        """Add an image."""
        self.found.append(json.dumps(entry))

    def fail(self, file: str, reason: str) -> None:
        """Add an image that could not be read or looked at."""
        self.failed.append(json.dumps(dict(file=file, reason=reason)))

    def write(self, file: Path) -> None:
        """Write the file, one image a line.

        Raises:
            UserError: if it cannot be written.
        """
        parts = [f'{json.dumps(key)}: {json.dumps(value)}' for key, value in self._about.items()]
        for key, entries in (('images', self.found), ('failed', self.failed)):
            lines = ',\n '.join(entries)
            parts.append(f'"{key}": [\n {lines}\n]' if entries else f'"{key}": []')
        write_whole(file, '{\n' + ',\n'.join(parts) + '\n}\n')


def _is_ours(file: Path) -> bool:
    try:
        return json.loads(file.read_text(encoding='utf-8'))['format'] == FORMAT
    except (OSError, ValueError, KeyError, TypeError):
        return False
