"""Read the scalars that MMEngine logs: losses and evaluation metrics."""

import json
from pathlib import Path
from typing import Any

from ptnt_mm.utils.errors import UserError


def scalar_files(work_dir: Path) -> list[Path]:
    """Return the log files of a run and of all its resumes, oldest first."""
    # The folders are named by start time.
    return sorted(work_dir.glob('*/vis_data/scalars.json'))


def read_scalars(path: Path) -> list[dict[str, Any]]:
    """Read one file of JSON lines; drop a last line that a killed process left unfinished.

    Raises:
        UserError: if a line was not written by MMEngine.
    """
    texts = [text for text in path.read_text(encoding='utf-8').splitlines() if text.strip()]
    lines = []
    for number, text in enumerate(texts, start=1):
        try:
            line = json.loads(text)
            line['step'] = int(line['step'])
        except (ValueError, KeyError, TypeError) as error:
            if number == len(texts):
                break
            raise UserError(
                f'{path}, line {number}, is not what MMEngine logs, a JSON dictionary with a '
                f'"step": {text[:60]!r}. Move this file away to read the rest.'
            ) from error
        lines.append(line)
    return lines
