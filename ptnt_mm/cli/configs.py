"""The configs of the package: ``python -m ptnt_mm list`` and ``python -m ptnt_mm copy``."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from ptnt_mm.zoo import config_names, copy_config


@dataclass(frozen=True)
class CopyArguments:
    """The command line of ``copy``, resolved.

    Attributes:
        name: Of a config of the package.
        folder: Where it and its bases are copied to.
    """

    name: str
    folder: Path


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add ``list`` and ``copy`` to the commands of the package."""
    listing = commands.add_parser('list', help='print the names of all configs')
    listing.set_defaults(run=lambda args: print(*config_names(), sep='\n'))
    copy = commands.add_parser('copy', help='copy a config and its bases into a folder')
    copy.add_argument('name', help='such as retinanet_ptnt_s_1x')
    copy.add_argument('folder', type=Path, help='where to')
    copy.set_defaults(run=lambda args: _copy(CopyArguments(args.name, args.folder)))


def _copy(arguments: CopyArguments) -> None:
    print(*copy_config(arguments.name, arguments.folder), sep='\n')
