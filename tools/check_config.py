"""Find problems in a config and its data: see ptnt_mm/cli/check.py."""

import sys

import light_start  # noqa: F401
from ptnt_mm.cli.check import main

if __name__ == '__main__':
    sys.exit(main())
