"""Detect or segment on an image, a folder, a video or a webcam: drawn pictures and JSON.

python tools/infer.py photos configs/retinanet_ptnt_s_1x.py work_dirs/.../epoch_12.pth
"""

import argparse
import sys
from pathlib import Path

from ptnt_mm.arguments import Parser
from ptnt_mm.engine.cli import add_config, run
from ptnt_mm.inference.run import infer


def make_parser() -> argparse.ArgumentParser:
    """The arguments."""
    parser = Parser(__doc__)
    parser.add_argument('input', help='an image, a folder, a video, or 0 for the first webcam')
    add_config(parser, 'model.test_cfg.max_per_img=20')
    parser.add_argument('checkpoint', help='what training saved')
    parser.add_argument(
        '--out', type=Path, metavar='DIR', help='where results go: work_dirs/infer/INPUT by default'
    )
    parser.add_argument(
        '--overwrite', action='store_true', help='replace the results of an earlier run'
    )
    parser.add_argument(
        '--score-thr',
        type=float,
        metavar='S',
        help='leave out what has a lower score, from pictures and JSON: 0.3 by default; '
        'segmenters have no scores and refuse it',
    )
    parser.add_argument('--no-draw', action='store_true', help='write the JSON file alone')
    parser.add_argument(
        '--show', action='store_true', help='show a video or a webcam in a window; q ends it'
    )
    parser.add_argument('--device', help='cpu, cuda or cuda:1; by default the best there is')
    return parser


if __name__ == '__main__':
    sys.exit(run(infer, make_parser()))
