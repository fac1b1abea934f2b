"""Provide mmcv.ops to all programs of this Python if mmcv is not compiled.

ptnt mmcv-ops install
"""

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.mmcv_ops import place
from ptnt_mm.mmcv_ops.place import status

_ACTIONS = {'install': place.install, 'remove': place.remove, 'status': status}


def main(words: list[str] | None = None) -> int:
    """Install or remove the operators, or report their provider; return the exit status."""
    return new_parser().run(lambda args: print(_ACTIONS[args.action]()), words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    parser.add_argument('action', choices=[*_ACTIONS], help='status tries import mmcv.ops')
    return parser
