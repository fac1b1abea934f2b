"""The rows of the model zoo: every config for a benchmark, and what was published for it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ptnt_mm.models.archs import ARCHS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.zoo import config_names

Figures = Mapping[str, float]
"""Figures in percent by the names of their metrics; what is unknown is left out."""


class Metric(NamedTuple):
    """A figure of an evaluation: its name in papers, and its key in the host's log."""

    name: str
    key: str
    task: str
    """The task's name in MIM's metafiles."""
    whole: int = 1
    """The value that the host logs for 100 percent."""


class Benchmark(NamedTuple):
    """A data set, with the split that is evaluated and its metrics, the main one first."""

    name: str
    split: str
    metrics: tuple[Metric, ...]
    train_size: tuple[int, int]
    """Height and width of training images, in pixels."""
    counted_size: tuple[int, int]
    """Height and width, in pixels, for which tables count multiply-adds."""


BOXES = (
    Metric('box AP', 'coco/bbox_mAP', 'Object Detection'),
    Metric('AP small', 'coco/bbox_mAP_s', 'Object Detection'),
    Metric('AP medium', 'coco/bbox_mAP_m', 'Object Detection'),
    Metric('AP large', 'coco/bbox_mAP_l', 'Object Detection'),
)
MASKS = (*BOXES, Metric('mask AP', 'coco/segm_mAP', 'Instance Segmentation'))
MAPS = (Metric('mIoU', 'mIoU', 'Semantic Segmentation', whole=100),)
LABELS = (
    Metric('top-1', 'accuracy/top1', 'Image Classification', whole=100),
    Metric('top-5', 'accuracy/top5', 'Image Classification', whole=100),
)

COCO = Benchmark('COCO', 'val2017', BOXES, (800, 1333), (800, 1280))
COCO_MASKS = COCO._replace(metrics=MASKS)
ADE20K = Benchmark('ADE20K', 'validation', MAPS, (512, 512), (512, 512))
CITYSCAPES = Benchmark('Cityscapes', 'val', MAPS, (512, 1024), (512, 1024))
# The sizes of all variants but PyramidTNT-Ti.
IMAGENET = Benchmark('ImageNet-1k', 'validation', LABELS, (256, 256), (256, 256))

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
        arch = next(arch for arch in ARCHS if arch.startswith(self.size))
        side = ARCHS[arch]['pretrain_img_size']
        return (side, side) if self.benchmark is IMAGENET else None

    @property
    def published(self) -> Figures:
        """The figures of the paper."""
        return _PUBLISHED.get(self.name, {})

    @property
    def step(self) -> str:
        """The name of its training step, which configs share that differ only in length."""
        return re.sub(r'_\d+[xke]', '', self.name)


# By method and schedule in a config's name, in the order of the zoo's page; each has the schedule
# of the number 1. '1x' or '3x_ms' is a multiple of 12 epochs, '40k_ade20k' thousands of iterations,
# '300e_imagenet' epochs.
# mmdet leaves out the 1,021 of train2017's 118,287 images that show no object.
_12_EPOCHS = Schedule(12, 'epoch', images=117_266)
_EPOCHS = r'x(_\w+)?'
_FAMILIES = {
    ('retinanet', _EPOCHS): ('RetinaNet', COCO, _12_EPOCHS),
    ('mask_rcnn', _EPOCHS): ('Mask R-CNN', COCO_MASKS, _12_EPOCHS),
    ('cascade_mask_rcnn', _EPOCHS): ('Cascade Mask R-CNN', COCO_MASKS, _12_EPOCHS),
    ('rtmdet', _EPOCHS): ('RTMDet', COCO, _12_EPOCHS),
    ('dino', _EPOCHS): ('DINO', COCO, _12_EPOCHS),
    ('semantic_fpn', 'k_ade20k'): ('Semantic FPN', ADE20K, Schedule(1000, 'iteration', 32)),
    ('upernet', 'k_ade20k'): ('UPerNet', ADE20K, Schedule(1000, 'iteration', 16)),
    ('upernet', 'k_cityscapes'): ('UPerNet', CITYSCAPES, Schedule(1000, 'iteration', 8, gpus=4)),
    ('classifier', 'e_imagenet'): ('Classifier', IMAGENET, Schedule(1, 'epoch', images=1_281_167)),
}


def list_entries() -> list[Entry]:
    """Return all rows, by method, benchmark, size and name."""
    names = sorted(config_names())
    found = []
    for (word, unit), (method, benchmark, schedule) in _FAMILIES.items():
        pattern = re.compile(rf'{word}_ptnt_(?P<size>[a-z]+)_(?P<number>\d+){unit}')
        matches = list(filter(None, map(pattern.fullmatch, names)))
        for arch in ARCHS:
            for match in matches:
                if arch.startswith(match['size']):
                    times = replace(schedule, length=schedule.length * int(match['number']))
                    found.append(Entry(match[0], method, match['size'], benchmark, times))
    return found


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
