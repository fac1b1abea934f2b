"""The pictures and objects of all sample data sets, and what a sample is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from labelformat.formats.labelformat import LabelformatObjectDetectionInput
from labelformat.model.bounding_box import BoundingBox
from labelformat.model.category import Category
from labelformat.model.image import Image as LabelImage
from labelformat.model.object_detection import ImageObjectDetection, SingleObjectDetection
from PIL import Image, ImageDraw

from ptnt_mm.workbench.data.class_masks import read_values
from ptnt_mm.workbench.data.labels import Labels
from ptnt_mm.workbench.data.recognise import read_labels, recognise
from ptnt_mm.workbench.data.tree import Tree

SIZE = (96, 64)
NAMES = ('cell', 'dot')
COUNT = 6

WIDTH, HEIGHT = 100, 50
BOX = (10, 5, 20, 30)  # of the cat in a.jpg, in TEXTS


def boxes_of(i: int) -> list[tuple[str, tuple[float, float, float, float]]]:
    """The objects of image i: classes and corners."""
    return [('cell', (4 + i, 6, 40 + i, 50)), ('dot', (60, 20 + i, 76, 40 + i))]


def class_mask(i: int) -> np.ndarray:
    """0, 1 for cells and 2 for dots, (H, W)."""
    pixels = np.zeros(SIZE[::-1], np.uint8)
    for name, (left, top, right, bottom) in boxes_of(i):
        pixels[top:bottom, left:right] = NAMES.index(name) + 1
    return pixels


def read(root: Path, name: str | None = None, task: str | None = None) -> Labels:
    """The labels of a folder, as ptnt new reads them."""
    tree = Tree(root)
    return read_labels(tree, recognise(tree, name, task))


def draw(file: Path, i: int) -> Path:
    """Draw image i with its objects; all differ."""
    rng = np.random.default_rng(i)
    image = Image.fromarray(rng.integers(0, 90, (*SIZE[::-1], 3), np.uint8))
    pen = ImageDraw.Draw(image)
    for name, corners in boxes_of(i):
        pen.rectangle(corners, fill=(200, 40, 40) if name == 'cell' else (40, 200, 90))
    file.parent.mkdir(parents=True, exist_ok=True)
    image.save(file)
    return file


def noise(file: Path, seed: int = 0, size: tuple[int, int] = (WIDTH, HEIGHT)) -> Path:
    """Draw a picture that differs from those of other seeds."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 255, (*size[::-1], 3), np.uint8)
    Image.fromarray(pixels).save(file)
    return file


def draw_all(folder: Path, suffix: str = '.png', first: int = 0, count: int = COUNT) -> list[Path]:
    return [draw(folder / f'im{i}{suffix}', i) for i in range(first, first + count)]


def as_labelformat(suffix: str = '.png') -> LabelformatObjectDetectionInput:
    """The same objects in labelformat's classes."""
    categories = [Category(i, name) for i, name in enumerate(NAMES)]
    images = [LabelImage(i, f'im{i}{suffix}', *SIZE) for i in range(COUNT)]
    labels = [
        ImageObjectDetection(
            image,
            [
                SingleObjectDetection(categories[NAMES.index(name)], BoundingBox(*corners))
                for name, corners in boxes_of(image.id)
            ],
        )
        for image in images
    ]
    return LabelformatObjectDetectionInput(categories, images, labels)


# ---- What a sample holds


def has_boxes(labels: Labels, names: tuple[str, ...] = NAMES) -> None:
    """Check that all images have the objects of :func:`boxes_of`."""
    assert len(labels.images) == COUNT
    for image in labels.images:
        assert image.size == SIZE
        i = int(image.path.stem.removeprefix('im'))
        corners = [corners for _, corners in boxes_of(i)]
        wanted = [(x, y, right - x, bottom - y) for x, y, right, bottom in corners]
        found = sorted(item.box for item in image.objects)
        assert len(found) == len(wanted)
        for box, other in zip(found, sorted(wanted), strict=True):
            assert box == pytest.approx(other, abs=0.5001)
        assert {item.label for item in image.objects} == set(names)


def has_unnamed_boxes(labels: Labels) -> None:
    """Check the same for a format without classes."""
    has_boxes(labels, ('object',))


def has_class_masks(labels: Labels) -> None:
    """Check that all images have the masks of :func:`class_mask`."""
    assert len(labels.images) == COUNT and len(labels.classes) == 1 + len(NAMES)
    for image in labels.images:
        indices = np.vectorize(labels.mask_indices.get)(read_values(image.mask))
        expected = class_mask(int(image.path.stem.removeprefix('im')))
        np.testing.assert_array_equal(indices, expected)


def has_classes(labels: Labels) -> None:
    """Check that every second image has the same class."""
    found = {int(image.path.stem.removeprefix('im')): image.label for image in labels.images}
    assert found == {i: NAMES[i % 2] for i in range(2 * COUNT)}


Plant = Callable[[Path], object]
"""Plants a fault in a sample, whose folder it gets."""


@dataclass(frozen=True, eq=False)  # so that samples can be keys
class Sample:
    """A small data set in a format.

    Attributes:
        write: Writes it into a folder, and returns the folder.
        holds: Checks its labels.
        splits: The number of images in each split, if there are several.
        faults: Faults that are reported, and cost one image at most.
        harmless: Faults, or what looks like one, after which all labels are read.
        emptied: Changes after which the first image has no objects.
        fatal: Faults after which no label can be read.
    """

    write: Callable[[Path], Path]
    holds: Callable[[Labels], None] = has_boxes
    splits: Mapping[str | None, int] = field(default_factory=dict)
    faults: Mapping[str, Plant] = field(default_factory=dict)
    harmless: Mapping[str, Plant] = field(default_factory=dict)
    emptied: Mapping[str, Plant] = field(default_factory=dict)
    fatal: Mapping[str, Plant] = field(default_factory=dict)

    @property
    def format(self) -> str:
        """The name of the format, which is that of the module with ``write``."""
        return self.write.__module__.rpartition('.')[2].replace('_', '-')

    @property
    def name(self) -> str:
        """Its name in the report of a test."""
        return self.write.__name__
