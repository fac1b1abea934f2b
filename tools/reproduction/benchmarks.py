"""The data sets that configs are trained and evaluated on, and their metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Metric:
    """A metric of an evaluation.

    Attributes:
        name: The name in papers.
        key: The key in the host's log.
        whole: The value that the host logs for 100 percent.
        task: The task's name in MIM's metafiles.
    """

    name: str
    key: str
    whole: float
    task: str

    def percent(self, line: Mapping[str, Any]) -> float | None:
        """Return a logged value in percent, to one decimal; None if it was not evaluated."""
        value = line.get(self.key, -1)
        return round(100 * value / self.whole, 1) if value >= 0 else None


@dataclass(frozen=True)
class Benchmark:
    """A data set, and how papers report results on it.

    Attributes:
        name: The name in papers.
        split: The split that is evaluated.
        metrics: The main metric first.
        train_size: Height and width of training images, in pixels.
        counted_size: Height and width, in pixels, for which tables count multiply-adds.
        in_paper: True if the paper has results on it.
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
