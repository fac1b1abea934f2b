"""The rows of the model zoo: every config for a benchmark, and what was published for it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ptnt_mm.models.archs import ARCHS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.zoo import config_names
from reproduction.benchmarks import ADE20K, CITYSCAPES, COCO, COCO_MASKS, IMAGENET, Benchmark

Figures = Mapping[str, float]
"""Figures in percent by the names of their metrics; what is unknown is left out."""

# ImageNet top-1 accuracy in percent by size, from the authors' readme.
_TOP_1 = {'ti': 75.2, 's': 82.0, 'm': 83.5, 'b': 84.1}

# What the paper (arXiv 2201.00978) prints, as far as we could confirm it.
_PUBLISHED: Mapping[str, Figures] = {
    'retinanet_ptnt_s_1x': {'box AP': 42.0, 'AP large': 57.7},
    **{f'classifier_ptnt_{size}_300e_imagenet': {'top-1': top} for size, top in _TOP_1.items()},
}


@dataclass(frozen=True)
class Schedule:
    """How long a config trains, and on how many GPUs its recipe is meant to run.

    Attributes:
        length: Number of epochs or iterations.
        unit: 'epoch' or 'iteration', in which the host counts evaluations.
        images: Number of images in one of them, on all GPUs.
        gpus: Number of GPUs, each with the config's batch.
    """

    length: int
    unit: str
    images: int
    gpus: int = 8

    def __str__(self) -> str:
        return f'{self.length:,} {self.unit}s'


@dataclass(frozen=True)
class Entry:
    """A config for a benchmark.

    Attributes:
        name: ``{method}_ptnt_{size}_{schedule}``, and where one method has several, the benchmark.
        method: The detector or segmenter, as its paper writes it, or 'Classifier'.
        size: How a variant's name begins, such as 'ti' or 's' for tiny and small.
        benchmark: What it is trained and evaluated on.
        schedule: How long it trains.
    """

    name: str
    method: str
    size: str
    benchmark: Benchmark
    schedule: Schedule

    @property
    def arch(self) -> str:
        """The variant: the first of :data:`ARCHS` that begins with the size."""
        return next(arch for arch in ARCHS if arch.startswith(self.size))

    @property
    def backbone(self) -> str:
        """The backbone, as the paper writes it."""
        return f'PyramidTNT-{self.size.capitalize()}'

    @property
    def weights(self) -> str | None:
        """The file of the backbone's weights; a name for your own where none was published.

        None where training starts from random numbers.
        """
        if self.benchmark is IMAGENET:
            return None
        top = f'_{_TOP_1[self.size]}' if self.size in _TOP_1 else ''
        return f'ptnt_{self.size}{top}.pth.tar'

    @property
    def train_size(self) -> tuple[int, int]:
        """Height and width of training images, in pixels."""
        return self._own_size or self.benchmark.train_size

    @property
    def counted_size(self) -> tuple[int, int]:
        """Height and width, in pixels, for which tables count multiply-adds."""
        return self._own_size or self.benchmark.counted_size

    @property
    def _own_size(self) -> tuple[int, int] | None:
        """That of the variant's position tables, for which it is pretrained."""
        side = ARCHS[self.arch]['pretrain_img_size']
        return (side, side) if self.benchmark is IMAGENET else None

    @property
    def published(self) -> Figures:
        """The figures of the paper."""
        return _PUBLISHED.get(self.name, {})

    @property
    def step(self) -> str:
        """The name of its training step, which configs share that differ only in length."""
        return re.sub(r'_\d+[xke]', '', self.name)


# '1x' or '3x_ms' is a multiple of 12 epochs, '40k_ade20k' thousands of iterations on ADE20K,
# '300e_imagenet' epochs on ImageNet.
_NAME = re.compile(r'(\w+)_ptnt_([a-z]+)_(\d+)(?:x(?:_\w+)?|[ke]_(\w+))')

# mmdet leaves out the 1,021 of train2017's 118,287 images that show no object.
_12_EPOCHS = Schedule(12, 'epoch', images=117_266)

# By method and, where one has several, benchmark in a config's name; in the order of the page.
# The schedule is that of the number 1.
_FAMILIES = {
    ('retinanet', None): ('RetinaNet', COCO, _12_EPOCHS),
    ('mask_rcnn', None): ('Mask R-CNN', COCO_MASKS, _12_EPOCHS),
    ('cascade_mask_rcnn', None): ('Cascade Mask R-CNN', COCO_MASKS, _12_EPOCHS),
    ('rtmdet', None): ('RTMDet', COCO, _12_EPOCHS),
    ('dino', None): ('DINO', COCO, _12_EPOCHS),
    ('semantic_fpn', 'ade20k'): ('Semantic FPN', ADE20K, Schedule(1000, 'iteration', 32)),
    ('upernet', 'ade20k'): ('UPerNet', ADE20K, Schedule(1000, 'iteration', 16)),
    ('upernet', 'cityscapes'): ('UPerNet', CITYSCAPES, Schedule(1000, 'iteration', 8, gpus=4)),
    ('classifier', 'imagenet'): ('Classifier', IMAGENET, Schedule(1, 'epoch', images=1_281_167)),
}


def list_entries() -> list[Entry]:
    """Return all rows, by method, benchmark, size and name."""
    families = [(method, benchmark) for method, benchmark, _ in _FAMILIES.values()]
    sizes = list(ARCHS)

    def place(entry: Entry) -> tuple[int, int, str]:
        family = entry.method, entry.benchmark
        return families.index(family), sizes.index(entry.arch), entry.name

    return sorted(filter(None, map(_entry, config_names())), key=place)


def _entry(name: str) -> Entry | None:
    """The row of a config; None for one that is not for a benchmark."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    word, size, number, dataset = match.groups()
    family = _FAMILIES.get((word, dataset))
    if family is None or not any(arch.startswith(size) for arch in ARCHS):
        return None
    method, benchmark, schedule = family
    schedule = replace(schedule, length=schedule.length * int(number))
    return Entry(name, method, size, benchmark, schedule)


def find_entries(names: list[str]) -> list[Entry]:
    """Return the rows of these names, in their order.

    Raises:
        UserError: if there is no such row; names the nearest.
    """
    known = {entry.name: entry for entry in list_entries()}
    for name in names:
        if name not in known:
            raise UserError(unknown_name('config of the model zoo', name, known))
    return [known[name] for name in names]
