"""The rows of the model zoo: every config for COCO, and what was published for it."""

import re
from dataclasses import dataclass

from ptnt_mm.errors import UserError, unknown_name
from ptnt_mm.zoo import config_names

PAPER = 'arXiv 2201.00978'
PAPER_URL = 'https://arxiv.org/abs/2201.00978'

DETECTORS = {
    'retinanet': 'RetinaNet',
    'mask_rcnn': 'Mask R-CNN',
    'cascade_mask_rcnn': 'Cascade Mask R-CNN',
    'rtmdet': 'RTMDet',
    'dino': 'DINO',
}
"""What the first words of a config's name stand for, in the order of the zoo's page."""

SIZES = ('ti', 's', 'm', 'b')

EPOCHS_OF_1X = 12

_NAME = re.compile(rf'({"|".join(DETECTORS)})_ptnt_({"|".join(SIZES)})_(\d)x(?:_\w+)?')


@dataclass(frozen=True)
class Figures:
    """Average precision on COCO val2017, in percent; None where nobody said it."""

    box_ap: float | None = None
    mask_ap: float | None = None


NO_FIGURES = Figures()

# What the paper prints, as far as we could confirm it.
_PUBLISHED = {'retinanet_ptnt_s_1x': Figures(box_ap=42.0)}


@dataclass(frozen=True)
class Entry:
    """A config for COCO.

    Attributes:
        name: Of the config: ``{detector}_ptnt_{size}_{schedule}``, with a schedule such as '3x_ms'.
        detector: As its paper writes it.
        size: One of :data:`SIZES`.
        epochs: How long it trains.
    """

    name: str
    detector: str
    size: str
    epochs: int

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
        return re.sub(r'_\dx', '', self.name)


def entries() -> list[Entry]:
    """All rows, by detector, size and name."""
    found = []
    for name in config_names():
        if match := _NAME.fullmatch(name):
            detector, size, times = match.groups()
            found.append(Entry(name, DETECTORS[detector], size, EPOCHS_OF_1X * int(times)))
    detectors = list(DETECTORS.values())
    return sorted(found, key=lambda e: (detectors.index(e.detector), SIZES.index(e.size), e.name))


def choose(names: list[str]) -> list[Entry]:
    """The rows of these names, in their order.

    Raises:
        UserError: if there is no such row; names the nearest.
    """
    known = {entry.name: entry for entry in entries()}
    for name in names:
        if name not in known:
            raise UserError(unknown_name('config for COCO', name, known))
    return [known[name] for name in names]
