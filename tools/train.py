"""Train a detector or segmenter from an MMEngine config.

python tools/train.py configs/retinanet_ptnt_s_1x.py --pretrained ptnt_s.pth.tar
"""

import sys

if __name__ == '__main__':
    try:
        from ptnt_mm.cli.parsers import run, train_parser
        from ptnt_mm.cli.train import train
    except KeyboardInterrupt:
        # Imports take a while, and nothing has begun.
        sys.exit(130)
    sys.exit(run(train, train_parser(__doc__)))
