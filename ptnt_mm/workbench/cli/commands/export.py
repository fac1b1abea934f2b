"""``ptnt export``: write a file that runs without torch, and check it."""

from argparse import Namespace
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.arguments import Command, Option, Switch
from ptnt_mm.workbench.cli.loading import importing
from ptnt_mm.workbench.cli.shared import CHECKPOINT, REPLACE, config_and_checkpoint_of, config_words
from ptnt_mm.workbench.cli.values import positive

# fmt: off
COMMAND = Command(
    'export',
    'write a file that runs without torch, and check it',
    """Export a model to a file that runs without torch, and check it.

ptnt export retinanet_ptnt_s_1x epoch_12.pth --out model.onnx
""",
    words=(
        *config_words('model.test_cfg.score_thr=0.3'),
        CHECKPOINT,
        Switch('dynamic', 'images of any size and number: the default', instead_of='size'),
        Switch('int8', 'quantise to 8 bits; needs `calibrate`'),
    ),
    keywords=(
        Option('out', 'the file to write: .onnx, .xml (OpenVINO) or .pt2', Path, required=True),
        Option('format', 'by default from the suffix of `out`',
               choices=('onnx', 'openvino', 'torch-export')),
        Option('size', 'a fixed height and width in pixels: the fastest', positive,
               metavar=('H', 'W'), nargs=2),
        Switch('half', 'store weights as float16'),
        Option('calibrate', 'folder of typical images, to measure the ranges of values on',
               Path, metavar='FOLDER'),
        Switch('evaluate', "print the file's metrics on the test set"),
        REPLACE,
    ),
    order=6,
    runs_hooks=True,
)
# fmt: on


def check_arguments(args: Namespace) -> None:
    """Refuse a wrong format, and options that do not fit it."""
    from ptnt_mm.utils.atomic_files import check_new
    from ptnt_mm.workbench.export.format_names import check_options, choose_format, files_of

    if args.int8 != (args.calibrate is not None):
        raise UserError('--int8 and --calibrate FOLDER belong together: pass both')
    format = choose_format(args.out, args.format)
    check_options(format, args.half, args.calibrate, args.evaluate)
    for file in files_of(args.out):
        check_new(file, args.overwrite)


def run(args: Namespace) -> None:
    """Export a model."""
    with importing():
        from ptnt_mm.workbench.export.export import export

    config, checkpoint = config_and_checkpoint_of(args)
    args.size = args.size and tuple(args.size)
    export(config, checkpoint, **COMMAND.given(args))
