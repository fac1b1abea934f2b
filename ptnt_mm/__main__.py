"""The configs of this package, and its operators for mmcv, from the command line.

Print the configs' names with ``python -m ptnt_mm list``; copy one with its bases into a folder of
your own with ``python -m ptnt_mm copy retinanet_ptnt_s_1x my_configs``. See docs/mmcv_ops.md for
``python -m ptnt_mm mmcv-ops install``.
"""

import argparse
import signal
import sys
from pathlib import Path

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.mmcv_ops import place
from ptnt_mm.utils.errors import exit_status
from ptnt_mm.zoo import config_names, copy_config


def main(argv: list[str] | None = None) -> int:
    """Run the command line; the exit status."""
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
    args = parser.parse_args(argv)
    return exit_status(lambda: run(args))


def run(args: argparse.Namespace) -> None:
    """Run the chosen command.

    Raises:
        UserError: for an unknown name, or a folder that cannot take the files.
    """
    if args.command == 'mmcv-ops':
        print(getattr(place, args.action)())
    else:
        names = config_names() if args.command == 'list' else copy_config(args.name, args.folder)
        print(*names, sep='\n')


if __name__ == '__main__':
    if hasattr(signal, 'SIGPIPE'):
        # As other tools do: end when nobody reads on, as in `... list | head`.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
