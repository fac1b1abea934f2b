"""The command ``python -m ptnt_mm``, which is ``ptnt``: see cli/commands.py."""

import sys

from ptnt_mm.cli.commands import main

if __name__ == '__main__':
    sys.exit(main())
