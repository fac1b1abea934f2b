"""The configs of this package, and its operators for mmcv, from the command line.

Print the configs' names with ``python -m ptnt_mm list``; copy one with its bases into a folder of
your own with ``python -m ptnt_mm copy retinanet_ptnt_s_1x my_configs``. See docs/mmcv_ops.md for
``python -m ptnt_mm mmcv-ops install``.
"""

from dataclasses import dataclass
from pathlib import Path

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.mmcv_ops import place
from ptnt_mm.zoo import config_names, copy_config


@dataclass(frozen=True)
class PackageArguments:
    """The command line, resolved: a command, and what that command takes."""

    command: str
    name: str | None = None
    folder: Path | None = None
    action: str | None = None


def main(words: list[str] | None = None) -> int:
    """Run the command line; the exit status."""
    return _parser().run(lambda args: _run(PackageArguments(**vars(args))), words)


def _parser() -> Parser:
    parser = Parser(__doc__.splitlines()[0], 'python -m ptnt_mm')
    commands = parser.add_subparsers(dest='command', required=True)
    commands.add_parser('list', help='print the names of all configs')
    copy = commands.add_parser('copy', help='copy a config and its bases into a folder')
    copy.add_argument('name', help='such as retinanet_ptnt_s_1x')
    copy.add_argument('folder', type=Path, help='where to')
    operators = commands.add_parser('mmcv-ops', help="mmcv's operators where nobody compiled them")
    operators.add_argument(
        'action',
        choices=['install', 'remove', 'status'],
        help='for all programs of this Python; or say who serves them now',
    )
    return parser


def _run(arguments: PackageArguments) -> None:
    """Run the chosen command."""
    match arguments.command:
        case 'list':
            print(*config_names(), sep='\n')
        case 'copy':
            print(*copy_config(arguments.name, arguments.folder), sep='\n')
        case 'mmcv-ops':
            print(getattr(place, arguments.action)())
