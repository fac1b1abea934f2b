"""Detect, segment or classify on images, a video or a webcam: drawn pictures and JSON.

ptnt infer photos retinanet_ptnt_s_1x work_dirs/retinanet_ptnt_s_1x/epoch_12.pth
ptnt infer photos model.onnx
"""

import argparse
from pathlib import Path

from ptnt_mm.cli.arguments import Parser, add_checkpoint, add_config, config_and_checkpoint_of
from ptnt_mm.cli.importing import importing
from ptnt_mm.utils.errors import UserError


def main(words: list[str] | None = None) -> int:
    """Run inference; return the exit status."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    parser.add_argument(
        'source', metavar='input', help='an image, a folder, a video, or 0 for the first webcam'
    )
    add_config(parser, 'model.test_cfg.max_per_img=20')
    add_checkpoint(parser)
    parser.add_argument(
        '--out', type=Path, metavar='DIR', help='output folder: work_dirs/infer/INPUT by default'
    )
    parser.add_argument(
        '--overwrite', action='store_true', help='replace the results of an earlier run'
    )
    parser.add_argument(
        '--score-thr',
        type=float,
        metavar='S',
        help='lowest score of predictions in pictures and JSON: by default 0.3 for detectors, 0 '
        'for classifiers; segmenters have no scores and refuse it',
    )
    parser.add_argument(
        '--no-draw', action='store_false', dest='draw', help='write only the JSON file'
    )
    parser.add_argument(
        '--show', action='store_true', help='show a video or a webcam in a window; q ends it'
    )
    parser.add_argument('--device', help='cpu, cuda or cuda:1; by default the best available')
    return parser


def _run(args: argparse.Namespace) -> None:
    with importing():
        from ptnt_mm.deploy.export_info import SUFFIXES
        from ptnt_mm.inference.infer import infer

    if Path(args.config).suffix not in SUFFIXES:
        config, checkpoint = config_and_checkpoint_of(args)
        name = args.config
    elif args.checkpoint or args.cfg_options or args.device:
        raise UserError(
            'expected a config and a checkpoint, or only an exported file, without --cfg-options '
            'and --device'
        )
    else:
        config, checkpoint, name = None, args.config, None
    infer(
        config,
        checkpoint,
        args.source,
        args.out,
        overwrite=args.overwrite,
        score_thr=args.score_thr,
        draw=args.draw,
        show=args.show,
        device=args.device,
        config_name=name,
    )
