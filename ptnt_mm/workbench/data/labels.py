"""The labels of a data set, in one form for all formats, and the problems found in them.

Boxes are x, y, width and height in pixels, from the upper left corner of the image as the hosts
load it. Segmentations are those of COCO: polygons, or run lengths.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np

from ptnt_mm.utils.findings import FindingKind
from ptnt_mm.utils.text import first_few, nfc

Box = tuple[float, float, float, float]
Segmentation = list[list[float]] | dict

TASKS = {
    'detection': 'boxes',
    'instance': 'a mask for each object',
    'semantic': 'a class for each pixel',
    'classification': 'a class for each image',
}
"""Tasks, and the labels that each needs."""


MANY = 0.1
"""A share of labels that is too large for single mistakes."""


class Outcome(StrEnum):
    """Whether ``ptnt new`` uses labels or files that have a problem, as its lines say it."""

    LEFT_OUT = 'left out'
    KEPT = 'kept'
    CLIPPED = 'clipped'
    AS_BOX = 'kept as boxes'  # without their masks
    IN_PART = 'the rest is kept'


@dataclass(frozen=True)
class LabelRule(FindingKind):
    """A kind of label that ``ptnt check`` reports, and ``ptnt new`` reports and may drop.

    Attributes:
        outcome: Whether ``ptnt new`` uses such labels.
        applies_to: Whether a label is of this kind, and so is reported; its argument depends on the
            table. For tables of arrays it returns (N,) bool.
        advice_if_many: Takes the place of ``advice`` if the rule applies to a tenth or more of all.
        only_if_many: Whether fewer are not reported.
    """

    outcome: Outcome
    applies_to: Callable
    advice_if_many: str = ''
    only_if_many: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether ``ptnt new`` keeps such labels, at least their boxes."""
        return self.outcome is not Outcome.LEFT_OUT

    def remaining(self, chosen: np.ndarray) -> np.ndarray:
        """The labels that are kept, (N,) bool, if the rule applies to the chosen, (N,) bool."""
        return ~chosen | self.is_kept

    def advice_for(self, chosen: np.ndarray) -> str:
        """Advice about the labels that the rule applies to, (N,) bool."""
        return self.advice_if_many if self.advice_if_many and are_many(chosen) else self.advice


def are_many(chosen: np.ndarray) -> bool:
    """Whether the chosen ones, (N,) bool, are a tenth or more of all."""
    return chosen.any() and chosen.mean() >= MANY


@dataclass(frozen=True)
class Problem:
    """Something that was skipped, or changed.

    Attributes:
        file: Its location: a label file or an image.
        kind: A fixed text for problems of one kind, such as 'boxes of negative size'.
        detail: The exact finding.
        label: The class of the object; empty for problems of whole files.
        outcome: Whether the subject of ``kind`` is used.
    """

    file: Path
    kind: str
    detail: str = ''
    label: str = ''
    outcome: Outcome = Outcome.LEFT_OUT

    @property
    def title(self) -> str:
        """The kind with what became of it: 'boxes of negative size, left out'."""
        return f'{self.kind}, {self.outcome}'


@dataclass(frozen=True)
class LabelledObject:
    """An object in an image.

    Attributes:
        label: Its class.
        box: Its box.
        segmentation: Its mask, if it has one.
        ignored: The word by which its file marks a region that does not count, such as 'iscrowd'
            or 'difficult'; empty for an object.
        score: That of a prediction, 0 to 1; None for what a person labelled.
    """

    label: str
    box: Box
    segmentation: Segmentation | None = None
    ignored: str = ''
    score: float | None = None


@dataclass(frozen=True)
class LabelledImage:
    """An image and its labels.

    Attributes:
        path: The file, in the folder of the data.
        size: (width, height) in pixels, as the hosts load it.
        split: 'train', 'val', 'test', or None if unknown.
        objects: Its objects, for detection and object masks.
        label: The class of the whole image.
        mask: The file with a class for each pixel.
        tile_of: The image that it is a tile of, relative to the folder of the data; empty if it is
            a whole one.
    """

    path: Path
    size: tuple[int, int]
    split: str | None = None
    objects: tuple[LabelledObject, ...] = ()
    label: str | None = None
    mask: Path | None = None
    tile_of: str = ''


@dataclass
class Labels:
    """All labels of a data set.

    Attributes:
        classes: Names of the classes, in the order of the data set if it has one.
        images: Usable images.
        problems: Omissions and changes.
        notes: Other remarks, a line each.
        aside: Image files that are not training images, such as masks.
        mask_indices: The index of the class of each value in a mask, read by
            ``data.class_masks.read_values``. Other values are ignored.
        thumbnails: A small picture of each image, in which copies look the same, by
            ``data.copies.thumbnail``.
    """

    classes: list[str] = field(default_factory=list)
    images: list[LabelledImage] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    aside: set[Path] = field(default_factory=set)
    mask_indices: dict[int, int] = field(default_factory=dict)
    thumbnails: dict[Path, np.ndarray] = field(default_factory=dict)

    def report(
        self,
        file: Path,
        kind: str,
        detail: str = '',
        label: str = '',
        outcome: Outcome = Outcome.LEFT_OUT,
    ) -> None:
        """Add a problem."""
        self.problems.append(Problem(file, kind, detail, as_class_name(label), outcome))

    def add_class(self, name: str) -> str:
        """Add a class unless it exists; return its name as it is kept."""
        name = as_class_name(name)
        if name not in self.classes:
            self.classes.append(name)
        return name

    def has_masks(self) -> bool:
        """Whether most objects have a mask, and not all of these are only boxes."""
        objects = [item for image in self.images for item in image.objects]
        masks = [item.segmentation for item in objects if item.segmentation is not None]
        return 2 * len(masks) > len(objects) and not all(map(has_four_corners, masks))


def as_class_name(text: str) -> str:
    """The name of a class in a label file, without surrounding spaces, in NFC."""
    return nfc(text.strip())


def ignored_regions(labels: Labels) -> str:
    """How many regions do not count, by the words of the files: '12 DontCare, 3 iscrowd'."""
    # A region that is ignored for every class is listed with each of them.
    regions = dict.fromkeys(
        (image.path, item.box, item.ignored)
        for image in labels.images
        for item in image.objects
        if item.ignored
    )
    return counted_classes(word for _, _, word in regions)


def counted_classes(names: Iterable[str]) -> str:
    """How often each class occurs: '64 door, 6 window'."""
    counts = Counter(names).most_common()
    return first_few(f'{count:,} {name}' for name, count in counts)


def has_four_corners(mask: Segmentation) -> bool:
    """Whether a mask is a rectangle, upright or turned, or another polygon of four corners."""
    if not isinstance(mask, list) or len(mask) != 1:
        return False
    corners = list(zip(mask[0][::2], mask[0][1::2], strict=False))
    return len(set(corners)) == 4 and len(corners) == 4 + (corners[0] == corners[-1])


def box_around(points: Sequence[float]) -> Box:
    """The box around the points x, y, x, y, ..."""
    left, top = min(points[::2]), min(points[1::2])
    return left, top, max(points[::2]) - left, max(points[1::2]) - top


def outlined(label: str, *polygons: list[float]) -> LabelledObject:
    """The object inside one or more polygons x, y, x, y, ..."""
    around = box_around([value for polygon in polygons for value in polygon])
    return LabelledObject(label, around, list(polygons))


def box_between(left: float, top: float, right: float, bottom: float) -> Box:
    """The box between two corners; its area is 0 if they are swapped."""
    return left, top, right - left, bottom - top
