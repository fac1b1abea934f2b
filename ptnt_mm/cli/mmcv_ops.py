"""mmcv's operators where nobody compiled them: ``python -m ptnt_mm mmcv-ops``."""

import argparse
from dataclasses import dataclass

from ptnt_mm.mmcv_ops import place


@dataclass(frozen=True)
class OperatorArguments:
    """The command line, resolved.

    Attributes:
        action: 'install' or 'remove' for all programs of this Python, or 'status'.
    """

    action: str


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``mmcv-ops`` to the commands of the package."""
    operators = commands.add_parser('mmcv-ops', help="mmcv's operators where nobody compiled them")
    operators.add_argument(
        'action',
        choices=['install', 'remove', 'status'],
        help='for all programs of this Python; or say who serves them now',
    )
    operators.set_defaults(run=lambda args: _run(OperatorArguments(args.action)))


def _run(arguments: OperatorArguments) -> None:
    print(getattr(place, arguments.action)())
