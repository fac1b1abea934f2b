"""The declaration of a writer of label files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptnt_mm.workbench.data.labels import LabelledImage
from ptnt_mm.workbench.data.reading.format import Format


@dataclass(frozen=True)
class Writer:
    """Writes labels in a format that annotation tools open.

    Attributes:
        format: The format; its module and that of the writer have the same name.
        write: Writes labels: the names of the classes, the images with polygons as masks, the
            folder that their names are relative to, and the folder to write to.
        files: The files that it writes, in Markdown, as all texts below, which the docs have.
        scores: Where they have the scores.
        masks: How they have masks; empty if they cannot store any.
    """

    format: Format
    write: Callable[[Sequence[str], Sequence[LabelledImage], Path, Path], None]
    files: str
    scores: str
    masks: str
