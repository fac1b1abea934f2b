"""Offer our operators to an mmcv that has none."""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

EXTENSION = Path(__file__).with_name('extension.py')


class Finder:
    """Finds only ``mmcv._ext``, and only if no other finder does."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Load our extension under mmcv's name."""
        return spec_from_file_location(name, EXTENSION) if name == 'mmcv._ext' else None


def add_finder() -> None:
    """Provide ``import mmcv._ext`` in this process if mmcv has no extension.

    Costs nothing until ``mmcv.ops`` is imported.
    """
    if Finder not in sys.meta_path:
        sys.meta_path.append(Finder)
