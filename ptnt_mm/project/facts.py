"""Statistics of a data set and the machine, from which a recipe is chosen."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import median

import numpy as np

from ptnt_mm.labels.model import LabelledImage
from ptnt_mm.project.backbones import MeasuredBackbone
from ptnt_mm.project.detectors import Detector
from ptnt_mm.project.step_memory import StepMemory
from ptnt_mm.utils.decoding import Range

_ENOUGH = 10  # objects of a class, to count


@dataclass(frozen=True)
class Facts:
    """The inputs of a recipe's rules.

    Attributes:
        task: The task, one of ``labels.TASKS``.
        counts: The number of images in each split.
        classes: The names of the classes.
        objects: The number of objects to train on, and ``most`` that of the fullest image.
        size: (width, height) of a typical image, in pixels, rounded.
        small: The side of a small object, as a share of the longer side of its image; None if
            there are no objects.
        smaller: Which objects are below that side, as the subject of a sentence.
        detector: The detector, segmenter or classifier.
        backbone: The backbone, and whether it starts from weights.
        memory: Memory of a training step, measured with this recipe; None if unknown.
        free: The device that trains, and its free memory in bytes, if that is known.
        asked_size: The requested longer side of images in pixels, if any.
        asked_epochs: The requested number of epochs, if any.
        asked_detector: Whether the detector was requested.
        value_range: The values that images of more than 8 bits are loaded in; None for the hosts'
            loading.
    """

    task: str
    counts: Mapping[str, int]
    classes: tuple[str, ...]
    objects: int
    most: int
    size: tuple[int, int]
    small: float | None
    smaller: str
    detector: Detector
    backbone: MeasuredBackbone
    memory: StepMemory | None = None
    free: tuple[str, int | None] = ('the machine', None)
    asked_size: int | None = None
    asked_epochs: int | None = None
    asked_detector: bool = False
    value_range: Range | None = None


def gather_facts(
    task: str,
    classes: tuple[str, ...],
    splits: Mapping[str, Sequence[LabelledImage]],
    detector: Detector,
    backbone: MeasuredBackbone,
) -> Facts:
    """The facts that the labels show; nothing is requested, and no memory is measured."""
    train = splits['train']
    numbers = [len(image.objects) for image in train]
    small, smaller = small_objects(train)
    return Facts(
        task=task,
        counts={split: len(images) for split, images in splits.items()},
        classes=classes,
        objects=sum(numbers),
        most=max(numbers),
        size=middle_size(train),
        small=small,
        smaller=smaller,
        detector=detector,
        backbone=backbone,
    )


def small_objects(images: Sequence[LabelledImage]) -> tuple[float | None, str]:
    """The side of a small object, as a share of the longer side of its image; and which are below.

    One object in ten is below it, or half of the objects of a class, if that side is smaller: no
    object of a class that is too small for the anchors would be detected.
    """
    sides = defaultdict(list)
    for image in images:
        for item in image.objects:
            if not item.ignored:
                side = (item.box[2] * item.box[3]) ** 0.5 / max(image.size)
                sides[item.label].append(side)
    if not sides:
        return None, ''
    found = [(float(np.quantile(sum(sides.values(), []), 0.1)), 'one object in ten is')]
    for label, of_class in sides.items():
        if len(of_class) >= _ENOUGH:
            found.append((median(of_class), f'half of {label!r} are'))
    return min(found, key=itemgetter(0))


def middle_size(images: Sequence[LabelledImage]) -> tuple[int, int]:
    """(width, height) of a typical image: the median longer and shorter side, in pixels."""
    long = round(median(max(image.size) for image in images))
    short = round(median(min(image.size) for image in images))
    is_wide = sum(image.size[0] >= image.size[1] for image in images) * 2 >= len(images)
    return (long, short) if is_wide else (short, long)
