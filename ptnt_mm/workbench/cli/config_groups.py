"""The groups of configs that ``ptnt configs`` shows."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from ptnt_mm.utils.errors import UserError

GROUPS = dict(
    atss='boxes on COCO, 36 epochs',
    cascade_mask_rcnn='boxes and masks on COCO, 12 or 36 epochs',
    classifier='ImageNet-1k, and fine-tuning on small data sets',
    custom='to be copied and changed for your own data',
    demo='trained on a CPU in minutes',
    detr='boxes on COCO, positions from a PEG',
    dino='boxes on COCO, 12 epochs',
    faster_rcnn='boxes on COCO, 12 epochs',
    gfl='boxes on COCO, 36 epochs',
    mask2former='masks, or masks and maps, on COCO, 50 epochs; class masks on ADE20K',
    mask_rcnn='boxes and masks on COCO, 12 or 36 epochs',
    oriented_rcnn='boxes with an angle on DOTA, 12 epochs; for the forks',
    pretrain='a start for a backbone, from images without labels',
    retinanet='boxes on COCO, 12 or 36 epochs: the benchmark of the paper',
    rotated_retinanet='boxes with an angle on DOTA, 12 epochs; for the forks',
    rtmdet='boxes on COCO, 12 epochs',
    semantic_fpn='class masks on ADE20K',
    sparse_rcnn='boxes on COCO, 36 epochs',
    upernet='class masks on ADE20K and Cityscapes',
)
"""The purpose of each group: configs whose names begin with the same words."""

_NETWORK = re.compile('_(ptnt|tnt|cpvt|r50)_')


def group_of(name: str) -> str:
    """The group of a config: 'custom', 'demo', 'pretrain', or what stands before its network."""
    first = name.partition('_')[0]
    return first if first in ('custom', 'demo', 'pretrain') else _NETWORK.split(name)[0]


def names_in(group: str | None, names: Iterable[str]) -> list[str]:
    """The names of a group's configs, by default all."""
    if group is not None and group not in GROUPS:
        raise UserError(f'there is no group {group}: choose from {", ".join(GROUPS)}')
    return [name for name in names if group in (None, group_of(name))]


def groups(names: Iterable[str]) -> Iterator[str]:
    """A line for each group: its name, the number of its configs, what they are for."""
    for group, members in groupby(names, group_of):
        yield f'{group:<17}  {len(list(members)):>2}  {GROUPS[group]}'
    yield '\nptnt configs list GROUP prints the names of a group.'
