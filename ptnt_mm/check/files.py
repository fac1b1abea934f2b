"""Annotation files and image folders that a config names."""

from collections.abc import Iterator
from pathlib import Path

from mmengine.config import Config

from ptnt_mm.engine.data_files import expected_files
from ptnt_mm.utils.findings import Finding, error, sound
from ptnt_mm.utils.text import nearest

_LAYOUT = (
    'paths start from the folder that you work in; docs/data.md has the settings, and '
    'tools/make_demo_data.py makes the demo set'
)


def check_files(config: Config, splits: tuple[str, ...]) -> Iterator[Finding]:
    """Look for what the data loaders and evaluators of some splits read."""
    for split in splits:
        expected = expected_files(config, split)
        missing = [path for path in expected if not path.exists()]
        for path in missing:
            yield error(split, f'{path} is not there{_neighbour(path)}', _LAYOUT)
        if expected and not missing:
            yield sound(split, ', '.join(map(str, expected)))


def _neighbour(path: Path) -> str:
    """The name beside a path that is most like its own."""
    if not path.parent.is_dir():
        return f', nor is its folder {path.parent}'
    return nearest(path.name, [other.name for other in path.parent.iterdir()])
