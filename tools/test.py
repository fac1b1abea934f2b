"""Evaluate a checkpoint of a detector or segmenter.

python tools/test.py configs/retinanet_ptnt_s_1x.py work_dirs/.../epoch_12.pth
"""

import sys

from ptnt_mm.engine.cli import run, test_parser
from ptnt_mm.engine.test import test

if __name__ == '__main__':
    sys.exit(run(test, test_parser(__doc__)))
