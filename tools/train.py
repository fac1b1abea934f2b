"""Train a detector, a segmenter or a classifier: see ptnt_mm/cli/train.py."""

import sys

import light_start  # noqa: F401
from ptnt_mm.cli.train import main

if __name__ == '__main__':
    sys.exit(main())
