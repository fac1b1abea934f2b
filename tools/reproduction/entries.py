"""The rows of the model zoo: the configs for a benchmark, and their published figures."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.weights.published import published_files
from ptnt_mm.workbench.config.zoo import config_names, get_config
from reproduction.experiments import read_tables

Figures = Mapping[str, float]
"""Results in percent by the names of their metrics; unknown ones are omitted."""

# The names of metrics in papers and in the hosts' logs, the main one first.
BOXES = {
    'box AP': 'coco/bbox_mAP',
    'AP50': 'coco/bbox_mAP_50',
    'AP75': 'coco/bbox_mAP_75',
    'AP small': 'coco/bbox_mAP_s',
    'AP medium': 'coco/bbox_mAP_m',
    'AP large': 'coco/bbox_mAP_l',
}
MASKS = {
    **BOXES,
    'mask AP': 'coco/segm_mAP',
    'mask AP50': 'coco/segm_mAP_50',
    'mask AP75': 'coco/segm_mAP_75',
}
SEGMENTS = {'PQ': 'coco_panoptic/PQ', **MASKS}
MAPS = {'mIoU': 'mIoU'}
ROTATED = {'mAP': 'dota/mAP'}
LABELS = {'top-1': 'accuracy/top1', 'top-5': 'accuracy/top5'}

# How a config's name begins; the order of the page.
METHODS = {
    'retinanet': 'RetinaNet',
    'faster_rcnn': 'Faster R-CNN',
    'mask_rcnn': 'Mask R-CNN',
    'cascade_mask_rcnn': 'Cascade Mask R-CNN',
    'atss': 'ATSS',
    'gfl': 'GFL',
    'sparse_rcnn': 'Sparse R-CNN',
    'rtmdet': 'RTMDet',
    'detr': 'DETR',
    'dino': 'DINO',
    'mask2former': 'Mask2Former',
    'rotated_retinanet': 'Rotated RetinaNet',
    'oriented_rcnn': 'Oriented R-CNN',
    'semantic_fpn': 'Semantic FPN',
    'upernet': 'UPerNet',
    'classifier': 'Classifier',
}
NETWORKS = {'ptnt': 'PyramidTNT', 'tnt': 'TNT', 'cpvt': 'CPVT', 'r50': 'ResNet-50'}
"""The backbones by their part of a config's name."""

_OF_FAMILY = '|'.join(NETWORKS.keys() - {'r50'})
_NAME = re.compile(rf'(\w+?)_(?:({_OF_FAMILY})_([a-z]+)|(r50))_(\w+)')
_SCHEDULE = re.compile(r'(?:^|_)(\d+)([xke])(?:_|$)')
_FINE_TUNING = ('epoch', 1000)  # its names have no schedule
_UNITS = {'x': ('epoch', 12), 'e': ('epoch', 1), 'k': ('iteration', 1000)}
_DATA = {
    'panoptic': ('COCO panoptic val2017', SEGMENTS),
    'dota': ('DOTA 1.0 trainval', ROTATED),
    'ade20k': ('ADE20K validation', MAPS),
    'cityscapes': ('Cityscapes val', MAPS),
    'imagenet': ('ImageNet-1k validation', LABELS),
    'cifar10': ('CIFAR-10 test', LABELS),
    'cifar100': ('CIFAR-100 test', LABELS),
    'flowers': ('Oxford Flowers test', LABELS),
    'pets': ('Oxford-IIIT Pets test', LABELS),
    'inat19': ('iNaturalist 2019 validation', LABELS),
}

# ImageNet top-1 accuracy in percent by size, from the authors' README.
_TOP_1 = {
    name.removeprefix('ptnt_'): file.top_1
    for name, (file, network) in published_files().items()
    if network.startswith('PyramidTNT ')
}

# As printed in the papers, as far as we could confirm it.
_PUBLISHED = {
    row.config: row.theirs
    for table in read_tables()
    for row in table.rows
    if row.theirs is not None and not row.options
}
_MORE: Mapping[str, Figures] = {'retinanet_ptnt_s_1x': {'AP large': 57.7}}


@dataclass(frozen=True)
class Entry:
    """A config of the model zoo.

    Attributes:
        name: ``{method}_{network}_{size}_{schedule}``, followed by a data set other than COCO.
        method: The detector or segmenter, as its paper writes it, or 'Classifier'.
        network: A key of ``NETWORKS``.
        size: The variant's alias, such as 'ti' for tiny; empty for ResNet-50.
        data: The data set and the split that is evaluated.
        metrics: The keys of its metrics in the host's log, by their names.
        unit: 'epoch' or 'iteration'.
        length: Number of epochs or iterations.
    """

    name: str
    method: str
    network: str
    size: str
    data: str
    metrics: Mapping[str, str]
    unit: str
    length: int

    @property
    def weights(self) -> str | None:
        """The name of the file of PyramidTNT's weights; None where a config needs no such file."""
        if self.metrics is LABELS or self.network != 'ptnt' or self.size not in _TOP_1:
            return None
        return f'ptnt_{self.size}_{_TOP_1[self.size]}.pth.tar'

    @property
    def gpus(self) -> int:
        """The number of GPUs that the recipe is for, each with the config's batch size."""
        if self.metrics is ROTATED:
            return 1
        return 4 if self.data.startswith('Cityscapes') else 8

    @property
    def architecture(self) -> str:
        """The backbone, such as 'PyramidTNT-S'."""
        return '-'.join(filter(None, [NETWORKS[self.network], self.size.capitalize()]))

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the images that papers count multiply-adds for, in pixels."""
        if self.metrics is LABELS:
            steps = get_config(self.name).test_dataloader.dataset.pipeline
            (side,) = (step.crop_size for step in steps if step.type == 'CenterCrop')
            return side, side
        if self.metrics is ROTATED:
            return 1024, 1024
        return (512, 512) if self.metrics is MAPS else (800, 1280)

    @property
    def published(self) -> Figures:
        """The figures of the paper."""
        if self.name not in _PUBLISHED:
            return {}
        return {next(iter(self.metrics)): _PUBLISHED[self.name], **_MORE.get(self.name, {})}


def _entry(name: str, word: str, network: str, size: str, r50: str, rest: str) -> Entry:
    schedule = _SCHEDULE.search(rest)
    unit, length = _UNITS[schedule[2]] if schedule else _FINE_TUNING
    length *= int(schedule[1]) if schedule else 1
    coco = ('COCO val2017', MASKS if 'mask' in word else BOXES)
    data, metrics = next((_DATA[part] for part in rest.split('_') if part in _DATA), coco)
    return Entry(name, METHODS[word], network or r50, size or '', data, metrics, unit, length)


def list_entries() -> list[Entry]:
    """Return all rows, by method, data, size and name."""
    matches = filter(None, map(_NAME.fullmatch, config_names()))
    entries = [_entry(match[0], *match.groups()) for match in matches if match[1] in METHODS]
    methods, networks, sizes = list(METHODS.values()), list(NETWORKS), ['', *_TOP_1]

    def order(entry: Entry) -> tuple:
        places = methods.index(entry.method), entry.data, networks.index(entry.network)
        return *places, sizes.index(entry.size), entry.name

    return sorted(entries, key=order)


def find_entries(names: list[str]) -> list[Entry]:
    """Return the rows of these names, in their order; all of them if there are no names.

    Raises:
        UserError: if there is no such row; suggests the nearest.
    """
    known = {entry.name: entry for entry in list_entries()}
    for name in names:
        if name not in known:
            raise UserError(unknown_name('config of the model zoo', name, known))
    return [known[name] for name in names or known]
