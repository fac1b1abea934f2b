"""The rows of the model zoo: every config for a benchmark, and what was published for it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ptnt_mm.models.archs import ARCHS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.zoo import config_names
from reproduction.benchmarks import ADE20K, CITYSCAPES, COCO, Benchmark
from reproduction.schedules import Epochs, Iterations, Schedule

PAPER = 'arXiv 2201.00978'
PAPER_URL = 'https://arxiv.org/abs/2201.00978'

EPOCH_OF_COCO = 117_266
"""Images: of train2017's 118,287 mmdet leaves out the 1,021 that show no object."""

Figures = Mapping[str, float]
"""Figures of a benchmark in percent, by their names; what nobody said is not in it."""

NO_FIGURES: Figures = MappingProxyType({})

# What the paper prints, as far as we could confirm it.
_PUBLISHED = {'retinanet_ptnt_s_1x': {'box AP': 42.0}}


@dataclass(frozen=True)
class Entry:
    """A config for a benchmark.

    Attributes:
        name: Of the config: ``{method}_ptnt_{size}_{schedule}``, and where one method has several,
            the benchmark.
        method: The detector or segmenter, as its paper writes it.
        size: How a variant's name begins, as in 'ti' or 's' for tiny and small.
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
    def published(self) -> Figures:
        """What the paper says."""
        return _PUBLISHED.get(self.name, NO_FIGURES)

    @property
    def step(self) -> str:
        """What a training step is named by: schedules only differ in how many there are."""
        return re.sub(r'_\d+[xk]', '', self.name)


def entries() -> list[Entry]:
    """All rows, by method, benchmark, size and name."""
    found = []
    for family in _FAMILIES:
        rows = list(family.rows())
        found += sorted(rows, key=lambda entry: (list(ARCHS).index(entry.arch), entry.name))
    return found


def choose(names: list[str]) -> list[Entry]:
    """The rows of these names, in their order.

    Raises:
        UserError: if there is no such row; names the nearest.
    """
    known = {entry.name: entry for entry in entries()}
    for name in names:
        if name not in known:
            raise UserError(unknown_name('config of the model zoo', name, known))
    return [known[name] for name in names]


@dataclass(frozen=True)
class _Family:
    """Configs of one method for one benchmark.

    Attributes:
        word: What their names begin with.
        method: What that stands for.
        benchmark: Theirs.
        ending: What their names end with: a pattern whose group is a number.
        schedule: Of the number 1.
    """

    word: str
    method: str
    benchmark: Benchmark
    ending: str
    schedule: Schedule

    def rows(self) -> Iterator[Entry]:
        """An entry for each."""
        pattern = re.compile(rf'{self.word}_ptnt_([a-z]+)_{self.ending}')
        for name in config_names():
            match = pattern.fullmatch(name)
            if match and any(arch.startswith(match[1]) for arch in ARCHS):
                size, times = match.groups()
                schedule = replace(self.schedule, length=self.schedule.length * int(times))
                yield Entry(name, self.method, size, self.benchmark, schedule)


def _detector(word: str, method: str) -> _Family:
    """Schedules are multiples of 12 epochs: '1x' or '3x_ms'; 8 GPUs have 2 images each."""
    return _Family(word, method, COCO, r'(\d)x(?:_\w+)?', Epochs(12, EPOCH_OF_COCO, 8))


def _segmenter(word: str, method: str, benchmark: Benchmark, images: int, gpus: int) -> _Family:
    """Schedules are thousands of iterations: '40k'; ``images`` are those of one on all GPUs."""
    ending = rf'(\d+)k_{benchmark.name.lower()}'
    return _Family(word, method, benchmark, ending, Iterations(1000, images, gpus))


# In the order of the zoo's page.
_FAMILIES = (
    _detector('retinanet', 'RetinaNet'),
    _detector('mask_rcnn', 'Mask R-CNN'),
    _detector('cascade_mask_rcnn', 'Cascade Mask R-CNN'),
    _detector('rtmdet', 'RTMDet'),
    _detector('dino', 'DINO'),
    _segmenter('semantic_fpn', 'Semantic FPN', ADE20K, images=32, gpus=8),
    _segmenter('upernet', 'UPerNet', ADE20K, images=16, gpus=8),
    _segmenter('upernet', 'UPerNet', CITYSCAPES, images=8, gpus=4),
)
