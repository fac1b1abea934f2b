"""Evaluate a checkpoint of a detector, a segmenter or a classifier: see ptnt_mm/cli/test.py."""

import sys

import light_start  # noqa: F401
from ptnt_mm.cli.test import main

if __name__ == '__main__':
    sys.exit(main())
