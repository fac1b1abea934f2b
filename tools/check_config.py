"""Say what in a config and its data would break a training, or silently go wrong.

python tools/check_config.py configs/custom_coco.py --gpus 8 --pretrained ptnt_s_82.0.pth.tar
"""

import sys

from ptnt_mm.cli.check_config import check
from ptnt_mm.cli.parsers import check_parser, run

if __name__ == '__main__':
    sys.exit(run(check, check_parser(__doc__)))
