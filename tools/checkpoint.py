"""Look into a checkpoint, convert or publish it: see ptnt_mm/cli/checkpoint.py."""

import sys

from ptnt_mm.cli.checkpoint import main

if __name__ == '__main__':
    sys.exit(main())
