"""Inspect, convert or publish a checkpoint: the same as ``ptnt checkpoint``."""

import sys

if __name__ == '__main__':
    PTNT_MM_REGISTERS_LATER = True  # help does not wait for torch
    from ptnt_mm.workbench.cli.main import run

    sys.exit(run('checkpoint'))
