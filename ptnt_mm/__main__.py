"""The configs of this package, and its operators for mmcv, from the command line.

Print the configs' names with ``python -m ptnt_mm list``; copy one with its bases into a folder of
your own with ``python -m ptnt_mm copy retinanet_ptnt_s_1x my_configs``. See docs/mmcv_ops.md for
``python -m ptnt_mm mmcv-ops install``.
"""

import signal
import sys

from ptnt_mm.cli import configs, mmcv_ops
from ptnt_mm.cli.arguments import Parser


def main(words: list[str] | None = None) -> int:
    """Run the command line; the exit status."""
    parser = Parser(__doc__.splitlines()[0], 'python -m ptnt_mm')
    commands = parser.add_subparsers(dest='command', required=True)
    configs.add_commands(commands)
    mmcv_ops.add_command(commands)
    return parser.run(lambda args: args.run(args), words)


if __name__ == '__main__':
    if hasattr(signal, 'SIGPIPE'):
        # As other tools do: end when nobody reads on, as in `... list | head`.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
