"""The results of ``ptnt infer`` in a folder: a JSON file, drawn pictures, and label files."""

import json
from pathlib import Path

FORMAT = 'ptnt_mm predictions 1'
"""Raise the number when the keys of the file change their meaning."""

FILE = 'predictions.json'
DRAWN = 'drawn'
LABELS = 'labels'


def is_predictions(file: Path) -> bool:
    """Whether ``ptnt infer`` wrote a JSON file."""
    try:
        return json.loads(file.read_text(encoding='utf-8'))['format'] == FORMAT
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
