"""Offer our operators to all programs of this Python, where nobody compiled those of mmcv.

ptnt mmcv-ops install
"""

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.mmcv_ops import place

_ACTIONS = {'install': place.install, 'remove': place.remove, 'status': place.status}


def main(words: list[str] | None = None) -> int:
    """Install or remove the operators, or say who serves them; the exit status."""
    return _parser().run(lambda args: print(_ACTIONS[args.action]()), words)


def _parser() -> Parser:
    parser = Parser(__doc__)
    parser.add_argument('action', choices=[*_ACTIONS], help='status says who serves them now')
    return parser
