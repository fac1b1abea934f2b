"""Export a detector or segmenter for other runtimes: the same as ``ptnt export``."""

import sys

if __name__ == '__main__':
    PTNT_MM_REGISTERS_LATER = True  # help does not wait for torch
    from ptnt_mm.workbench.cli.main import run

    sys.exit(run('export'))
