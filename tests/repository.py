"""Where this repository is, and the environment of processes that import it."""

import os
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment(**more: str) -> dict[str, str]:
    """The environment variables of this process, for another that imports ``ptnt_mm`` from here."""
    return {**os.environ, 'PYTHONPATH': str(ROOT)} | more


def contents(folder: Path) -> dict[str, str]:
    """A hash of every file below a folder, by its relative path."""
    files = (path for path in folder.rglob('*') if path.is_file())
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest() for path in files
    }
