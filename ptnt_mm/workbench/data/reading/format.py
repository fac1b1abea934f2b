"""The declaration of a label format."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from ptnt_mm.workbench.data.labels import Labels
from ptnt_mm.workbench.data.tree import Tree


class Signs(Enum):
    """The signs by which a format is recognised in a folder."""

    FILES = auto()  # label files
    MASKS = auto()  # the names of pictures: several masks for an image
    PAIRS = auto()  # the names of pictures, or `pairs`: a mask for an image
    FOLDERS = auto()  # folders of images


@dataclass(frozen=True)
class Format:
    """A way to store labels.

    Attributes:
        module: ``__name__`` of its module.
        title: Its usual name.
        looks_for: A description of the files that identify it, for errors and the docs.
        tasks: Tasks that it has labels for.
        order: Its place among the formats, of which those with the clearest signs are tried first:
            below 200 if it has label files, otherwise from 200 on.
        find: Searches a folder; returns a description of what was found, or an empty string.
        read: Reads the labels.
        note: What else the table in ``docs/formats.md`` says about it, in Markdown.
        find_any: Searches with fewer signs, if the format or its task was asked for.
        signs: What it is recognised by.
    """

    module: str
    title: str
    looks_for: str
    tasks: tuple[str, ...]
    order: int
    find: Callable[[Tree], str]
    read: Callable[[Tree], Labels]
    note: str = ''
    find_any: Callable[[Tree], str] = lambda tree: ''
    signs: Signs = Signs.FILES

    @property
    def name(self) -> str:
        """Its name for ``--format``: that of its module, with - for _."""
        return self.module.rpartition('.')[2].replace('_', '-')

    @property
    def has_label_files(self) -> bool:
        """Whether it is more than pictures in folders, which any data set may have."""
        return self.signs is Signs.FILES
