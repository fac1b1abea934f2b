"""The rows of the model zoo: PyramidTNT's configs for a benchmark, and their published figures."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ptnt_mm.config.zoo import config_names
from ptnt_mm.models.pyramid_tnt import ARCHS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name

Figures = Mapping[str, float]
"""Results in percent by the names of their metrics; unknown ones are omitted."""

# The names of metrics in papers and in the hosts' logs, the main one first.
BOXES = {
    'box AP': 'coco/bbox_mAP',
    'AP small': 'coco/bbox_mAP_s',
    'AP medium': 'coco/bbox_mAP_m',
    'AP large': 'coco/bbox_mAP_l',
}
MASKS = {**BOXES, 'mask AP': 'coco/segm_mAP'}
MAPS = {'mIoU': 'mIoU'}
LABELS = {'top-1': 'accuracy/top1', 'top-5': 'accuracy/top5'}

# How a config's name begins; the order of the page.
METHODS = {
    'retinanet': 'RetinaNet',
    'mask_rcnn': 'Mask R-CNN',
    'cascade_mask_rcnn': 'Cascade Mask R-CNN',
    'atss': 'ATSS',
    'gfl': 'GFL',
    'sparse_rcnn': 'Sparse R-CNN',
    'rtmdet': 'RTMDet',
    'dino': 'DINO',
    'semantic_fpn': 'Semantic FPN',
    'upernet': 'UPerNet',
    'classifier': 'Classifier',
}
_NAME = re.compile(r'(\w+)_ptnt_([a-z]+)_(\d+)([xke])(?:_(\w+))?')
_UNITS = {'x': ('epoch', 12), 'e': ('epoch', 1), 'k': ('iteration', 1000)}
_DATA = {
    'ade20k': ('ADE20K validation', MAPS),
    'cityscapes': ('Cityscapes val', MAPS),
    'imagenet': ('ImageNet-1k validation', LABELS),
}

# ImageNet top-1 accuracy in percent by size, from the authors' README.
_TOP_1 = {row['alias']: row['published'][0].top_1 for row in ARCHS.values()}

# As printed in the paper (arXiv 2201.00978), as far as we could confirm it.
_PUBLISHED: Mapping[str, Figures] = {
    'retinanet_ptnt_s_1x': {'box AP': 42.0, 'AP large': 57.7},
    **{f'classifier_ptnt_{size}_300e_imagenet': {'top-1': top} for size, top in _TOP_1.items()},
}


@dataclass(frozen=True)
class Entry:
    """A config of the model zoo.

    Attributes:
        name: ``{method}_ptnt_{size}_{schedule}``, followed by a data set other than COCO.
        method: The detector or segmenter, as its paper writes it, or 'Classifier'.
        size: The variant's alias, such as 'ti' for tiny.
        data: The data set and the split that is evaluated.
        metrics: The keys of its metrics in the host's log, by their names.
        unit: 'epoch' or 'iteration'.
        length: Number of epochs or iterations.
    """

    name: str
    method: str
    size: str
    data: str
    metrics: Mapping[str, str]
    unit: str
    length: int

    @property
    def weights(self) -> str | None:
        """The name of the file with the backbone's weights; None for random initialisation."""
        if self.metrics is LABELS:
            return None
        return f'ptnt_{self.size}_{_TOP_1[self.size]}.pth.tar'

    @property
    def gpus(self) -> int:
        """The number of GPUs that the recipe is for, each with the config's batch size."""
        return 4 if self.data.startswith('Cityscapes') else 8

    @property
    def published(self) -> Figures:
        """The figures of the paper."""
        return _PUBLISHED.get(self.name, {})


def _entry(name: str, word: str, size: str, number: str, letter: str, rest: str | None) -> Entry:
    unit, length = _UNITS[letter]
    coco = ('COCO val2017', MASKS if 'mask' in word else BOXES)
    data, metrics = _DATA.get(rest, coco)
    return Entry(name, METHODS[word], size, data, metrics, unit, length * int(number))


def list_entries() -> list[Entry]:
    """Return all rows, by method, data, size and name."""
    matches = filter(None, map(_NAME.fullmatch, config_names()))
    entries = [_entry(match[0], *match.groups()) for match in matches if match[1] in METHODS]
    methods, sizes = list(METHODS.values()), list(_TOP_1)

    def order(entry: Entry) -> tuple:
        return methods.index(entry.method), entry.data, sizes.index(entry.size), entry.name

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
