"""Statistics of a data set and the machine, from which a recipe is chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from ptnt_mm.project.backbones import Backbone
from ptnt_mm.project.labels import LabelledImage
from ptnt_mm.project.step_memory import StepMemory


@dataclass(frozen=True)
class Facts:
    """The inputs of a recipe's rules.

    Attributes:
        task: The task, one of ``labels.TASKS``.
        counts: The number of images in each split.
        classes: The names of the classes.
        objects: The number of objects to train on, and ``most`` that of the fullest image.
        size: (width, height) of a typical image, in pixels, rounded.
        small: The side of a small object, as a share of the longer side of its image: one in ten
            is smaller; None if there are no objects.
        backbone: The backbone, and whether it starts from weights.
        memory: Memory of a training step, measured with this recipe; None if unknown.
        free: The device that trains, and its free memory in bytes, if that is known.
        asked_size: The requested longer side of images in pixels, if any.
        asked_epochs: The requested number of epochs, if any.
    """

    task: str
    counts: Mapping[str, int]
    classes: tuple[str, ...]
    objects: int
    most: int
    size: tuple[int, int]
    small: float | None
    backbone: Backbone
    memory: StepMemory | None = None
    free: tuple[str, int | None] = ('the machine', None)
    asked_size: int | None = None
    asked_epochs: int | None = None


def small_object(images: Sequence[LabelledImage]) -> float | None:
    """The side of a small object, as a share of the longer side of its image."""
    sides = [
        (item.box[2] * item.box[3]) ** 0.5 / max(image.size)
        for image in images
        for item in image.objects
        if not item.ignored
    ]
    return float(np.quantile(sides, 0.1)) if sides else None


def middle_size(images: Sequence[LabelledImage]) -> tuple[int, int]:
    """(width, height) of a typical image: the median longer and shorter side, in pixels."""
    long = round(median(max(image.size) for image in images))
    short = round(median(min(image.size) for image in images))
    is_wide = sum(image.size[0] >= image.size[1] for image in images) * 2 >= len(images)
    return (long, short) if is_wide else (short, long)
