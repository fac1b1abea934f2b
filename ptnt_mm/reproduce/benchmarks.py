"""What configs are trained and evaluated on: the data sets and their figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Metric:
    """A figure of an evaluation.

    Attributes:
        name: As papers call it.
        key: As the host logs it.
        whole: What the host logs for 100 percent.
        task: What it measures, as MIM's metafiles call it.
    """

    name: str
    key: str
    whole: float
    task: str

    def percent(self, line: Mapping[str, Any]) -> float | None:
        """The figure of a logged evaluation as papers print it; None for what was not evaluated."""
        value = line.get(self.key, -1)
        return round(100 * value / self.whole, 1) if value >= 0 else None


@dataclass(frozen=True)
class Benchmark:
    """A data set, and how papers report on it.

    Attributes:
        name: As papers write it.
        split: What is evaluated.
        metrics: The first is the one that ranks models.
        train_size: Height and width, in pixels, of the images of a training step.
        counted_size: Height and width, in pixels, that tables count multiply-adds at.
        in_paper: Whether the paper has results on it.
    """

    name: str
    split: str
    metrics: tuple[Metric, ...]
    train_size: tuple[int, int]
    counted_size: tuple[int, int]
    in_paper: bool


_MIOU = Metric('mIoU', 'mIoU', 100, 'Semantic Segmentation')

COCO = Benchmark(
    name='COCO',
    split='val2017',
    metrics=(
        Metric('box AP', 'coco/bbox_mAP', 1, 'Object Detection'),
        Metric('mask AP', 'coco/segm_mAP', 1, 'Instance Segmentation'),
    ),
    train_size=(800, 1333),
    counted_size=(800, 1280),
    in_paper=True,
)
ADE20K = Benchmark(
    name='ADE20K',
    split='validation',
    metrics=(_MIOU,),
    train_size=(512, 512),
    counted_size=(512, 512),
    in_paper=False,
)
CITYSCAPES = Benchmark(
    name='Cityscapes',
    split='val',
    metrics=(_MIOU,),
    train_size=(512, 1024),
    counted_size=(512, 1024),
    in_paper=False,
)
