"""Export a detector or segmenter to a file that runs without torch, and check it.

ptnt export retinanet_ptnt_s_1x epoch_12.pth --out model.onnx
"""

import argparse
from pathlib import Path

from ptnt_mm.cli.arguments import (
    Parser,
    add_checkpoint,
    add_config,
    config_and_checkpoint_of,
    positive,
)
from ptnt_mm.cli.importing import importing
from ptnt_mm.utils.errors import UserError


def main(words: list[str] | None = None) -> int:
    """Export a model; return the exit status."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    add_config(parser, 'model.test_cfg.score_thr=0.3')
    add_checkpoint(parser)
    parser.add_argument(
        '--out', type=Path, required=True, help='the file to write: .onnx, .xml (OpenVINO) or .pt2'
    )
    parser.add_argument(
        '--format',
        choices=('onnx', 'openvino', 'torch-export'),
        help='by default from the suffix of --out',
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument(
        '--size',
        nargs=2,
        type=positive,
        metavar=('H', 'W'),
        help='a fixed size in pixels: the fastest',
    )
    shape.add_argument(
        '--dynamic', action='store_true', help='images of any size and number: the default'
    )
    parser.add_argument('--half', action='store_true', help='store weights as float16')
    parser.add_argument('--int8', action='store_true', help='quantise to 8 bits')
    parser.add_argument(
        '--calibrate', type=Path, metavar='FOLDER', help='typical images, for --int8'
    )
    parser.add_argument(
        '--evaluate', action='store_true', help="print the file's metrics on the test set"
    )
    parser.add_argument('--overwrite', action='store_true', help='replace an existing file')
    return parser


def _run(args: argparse.Namespace) -> None:
    if args.int8 != (args.calibrate is not None):
        raise UserError('--int8 and --calibrate FOLDER belong together: pass both')
    with importing():
        from ptnt_mm.export.export import export

    config, checkpoint = config_and_checkpoint_of(args)
    export(
        config,
        checkpoint,
        args.out,
        format=args.format,
        size=args.size and tuple(args.size),
        half=args.half,
        calibrate=args.calibrate,
        evaluate=args.evaluate,
        overwrite=args.overwrite,
    )
