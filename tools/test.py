"""Evaluate a checkpoint of a detector or segmenter.

python tools/test.py configs/retinanet_ptnt_s_1x.py work_dirs/.../epoch_12.pth
"""

import sys

if __name__ == '__main__':
    try:
        from ptnt_mm.cli.parsers import run, test_parser
        from ptnt_mm.cli.test import test
    except KeyboardInterrupt:
        # Imports take a while, and nothing has begun.
        sys.exit(130)
    sys.exit(run(test, test_parser(__doc__)))
