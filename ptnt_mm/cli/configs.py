"""List the configs of this package, or copy one with its bases into a folder.

ptnt configs
ptnt configs list retinanet
ptnt configs copy retinanet_ptnt_s_1x my_configs
"""

import argparse
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.cli.importing import importing
from ptnt_mm.utils.errors import UserError

GROUPS = dict(
    atss='boxes on COCO, 36 epochs',
    cascade_mask_rcnn='boxes and masks on COCO, 12 or 36 epochs',
    classifier='ImageNet-1k, and fine-tuning on small data sets',
    custom='to be copied and changed for your own data',
    demo='trained on a CPU in minutes',
    detr='boxes on COCO, positions from a PEG',
    dino='boxes on COCO, 12 epochs',
    gfl='boxes on COCO, 36 epochs',
    mask_rcnn='boxes and masks on COCO, 12 or 36 epochs',
    retinanet='boxes on COCO, 12 or 36 epochs: the benchmark of the paper',
    rtmdet='boxes on COCO, 12 epochs',
    semantic_fpn='class masks on ADE20K',
    sparse_rcnn='boxes on COCO, 36 epochs',
    upernet='class masks on ADE20K and Cityscapes',
)
"""The purpose of each group: configs whose names begin with the same words."""

_NETWORK = re.compile('_(ptnt|tnt|cpvt|r50)_')


def main(words: list[str] | None = None) -> int:
    """Print groups of configs, their names or the copied files; return the exit status."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    commands = parser.add_subparsers(dest='command')
    names = commands.add_parser('list', help='print the names of all configs, or of a group')
    names.add_argument('group', nargs='?', help='such as retinanet')
    copy = commands.add_parser('copy', help='copy a config and its bases into a folder')
    copy.add_argument('config', help='such as retinanet_ptnt_s_1x')
    copy.add_argument('folder', type=Path, help='where to')
    return parser


def group_of(name: str) -> str:
    """The group of a config: 'custom', 'demo', or what stands before its network."""
    first = name.partition('_')[0]
    return first if first in ('custom', 'demo') else _NETWORK.split(name)[0]


def _run(args: argparse.Namespace) -> None:
    with importing():
        from ptnt_mm.config.zoo import config_names, copy_config

    if args.command == 'copy':
        lines = copy_config(args.config, args.folder)
    elif args.command == 'list':
        lines = _names_in(args.group, config_names())
    else:
        lines = _groups(config_names())
    print(*lines, sep='\n')


def _names_in(group: str | None, names: Iterable[str]) -> list[str]:
    if group is not None and group not in GROUPS:
        raise UserError(f'there is no group {group}: choose from {", ".join(GROUPS)}')
    return [name for name in names if group in (None, group_of(name))]


def _groups(names: Iterable[str]) -> Iterator[str]:
    """A line for each group: its name, the number of its configs, what they are for."""
    for group, members in groupby(names, group_of):
        yield f'{group:<17}  {len(list(members)):>2}  {GROUPS[group]}'
    yield '\nptnt configs list GROUP prints the names of a group.'
