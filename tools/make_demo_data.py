"""Create the demo data set: the same as ``ptnt demo``."""

import sys

if __name__ == '__main__':
    PTNT_MM_REGISTERS_LATER = True  # help does not wait for torch
    from ptnt_mm.workbench.cli.main import run

    sys.exit(run('demo'))
