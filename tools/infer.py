"""Detect, segment or classify on images, a video or a webcam: the same as ``ptnt infer``."""

import sys

if __name__ == '__main__':
    PTNT_MM_REGISTERS_LATER = True  # help does not wait for torch
    from ptnt_mm.workbench.cli.main import run

    sys.exit(run('infer'))
