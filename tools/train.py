"""Train a detector, a segmenter or a classifier: the same as ``ptnt train``."""

import sys

if __name__ == '__main__':
    PTNT_MM_REGISTERS_LATER = True  # help does not wait for torch
    from ptnt_mm.workbench.cli.main import run

    sys.exit(run('train'))
