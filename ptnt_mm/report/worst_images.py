"""An image of a report's gallery."""

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Worst:
    """An image with the cost of its result."""

    file: Path
    name: str  # on the page
    cost: float  # the higher, the worse
    key: Hashable  # of the image in the report of its run
