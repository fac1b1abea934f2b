"""The command ``python -m ptnt_mm``, which is ``ptnt``: see cli/main.py."""

from ptnt_mm.cli.main import leave, main

if __name__ == '__main__':
    leave(main())
