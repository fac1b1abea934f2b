"""Where this repository is, and the environment of processes that import it."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment(**more: str) -> dict[str, str]:
    """The environment variables of this process, for another that imports ``ptnt_mm`` from here."""
    return {**os.environ, 'PYTHONPATH': str(ROOT)} | more
