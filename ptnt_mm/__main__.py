"""The command ``python -m ptnt_mm``, which is ``ptnt``: see cli/commands.py."""

from ptnt_mm.cli.commands import leave, main

if __name__ == '__main__':
    leave(main())
