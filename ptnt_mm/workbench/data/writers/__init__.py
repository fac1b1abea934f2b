"""Writers of label files for annotation tools, a module each, with the name of its format."""

from functools import cache
from typing import TYPE_CHECKING

from ptnt_mm.utils.declarations import declared, names_in

if TYPE_CHECKING:
    from ptnt_mm.workbench.data.writer import Writer

WRITER_NAMES = names_in(__path__)
"""The values of ``--labels``."""


@cache
def all_writers() -> dict[str, 'Writer']:
    """The writers by the names of their formats."""
    return {writer.format.name: writer for writer in declared(__name__, WRITER_NAMES, 'WRITER')}
