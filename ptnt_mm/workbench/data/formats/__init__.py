"""Label formats, a module each: what it is called, how it is recognised, and its reader."""

from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING

from ptnt_mm.utils.declarations import declared, names_in

if TYPE_CHECKING:
    from ptnt_mm.workbench.data.reading.format import Format

FORMAT_NAMES = names_in(__path__)
"""The values of ``--format``."""


@cache
def all_formats() -> tuple['Format', ...]:
    """The formats in the order in which they are tried."""
    formats = declared(__name__, FORMAT_NAMES, 'FORMAT')
    return tuple(sorted(formats, key=attrgetter('order', 'name')))
