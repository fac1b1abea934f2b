"""The folder of the page of ``ptnt visualize``; needs no torch."""

from pathlib import Path

from ptnt_mm.utils.atomic_files import check_folder
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.zoo import PROJECT_CONFIG

GENERATOR = 'ptnt_mm visualize'
"""Marker in each page, so that one page may replace another."""


def name_of(config: Path) -> str:
    """The name of a config file, or of its project."""
    config = config.absolute()
    return config.parent.name if config.name == PROJECT_CONFIG else config.stem


def choose_page(config: Path, out: Path | None, overwrite: bool) -> Path:
    """The page about a config file, by default in its project, or in a folder of its name.

    Raises:
        UserError: if it exists and may not be replaced.
    """
    if out is not None:
        folder = out
    elif config.name == PROJECT_CONFIG:
        folder = config.parent / 'visualize'
    else:
        folder = Path('work_dirs', 'visualize', config.stem)
    check_folder('out', folder)
    page = folder / 'index.html'
    if page.exists() and f'content="{GENERATOR}"' not in page.read_text(errors='replace'):
        raise UserError(f'{page} exists and is not a page of ptnt visualize: choose another `out`')
    if page.exists() and not overwrite:
        raise UserError(f'{page} exists: choose another `out`, or pass `overwrite=True`')
    return page
