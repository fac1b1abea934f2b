"""Evaluate a checkpoint of a detector, a segmenter or a classifier.

ptnt test retinanet_ptnt_s_1x work_dirs/retinanet_ptnt_s_1x/epoch_12.pth
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ptnt_mm.cli.arguments import (
    Parser,
    add_checkpoint,
    add_config,
    add_work_dir_and_launcher,
    config_and_checkpoint_of,
)
from ptnt_mm.cli.class_table import class_table
from ptnt_mm.cli.importing import importing
from ptnt_mm.cli.json_output import add_json, json_output
from ptnt_mm.utils.console import show
from ptnt_mm.utils.metrics import readable
from ptnt_mm.utils.tables import listed
from ptnt_mm.utils.text import counted, near

if TYPE_CHECKING:
    from mmengine.runner import Runner


def main(words: list[str] | None = None) -> int:
    """Evaluate a checkpoint; return the exit status."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    add_config(parser)
    add_work_dir_and_launcher(parser)
    add_checkpoint(parser)
    parser.add_argument('--out', type=Path, metavar='FILE.pkl', help='file for predictions')
    parser.add_argument('--show-dir', type=Path, help='folder for pictures of predictions')
    parser.add_argument('--tta', action='store_true', help='average over scales and mirroring')
    add_json(parser)
    return parser


def _run(args: argparse.Namespace) -> None:
    with importing():
        from mmengine.dist import is_main_process

        from ptnt_mm.engine.test import build_test, run_test

    with json_output(args.json, args.overwrite) as write:
        config, checkpoint = config_and_checkpoint_of(args)
        runner = build_test(
            config,
            checkpoint,
            args.work_dir,
            out=args.out,
            show_dir=args.show_dir,
            tta=args.tta,
            launcher=args.launcher,
        )
        if is_main_process():
            images = counted(len(runner.test_loop.dataloader.dataset), 'image')
            show(f'Testing {near(checkpoint)} on {images}')
        metrics = run_test(runner)
        if is_main_process():
            write(metrics)
            show(_closing(metrics, runner, args))


def _closing(metrics: dict[str, float], runner: 'Runner', args: argparse.Namespace) -> str:
    """All scores, those of the classes, and the paths of the results."""
    from ptnt_mm.engine.hooks.health import NO_FIGURES
    from ptnt_mm.engine.run_display import display_of
    from ptnt_mm.engine.runner import log_file

    paths = dict(log=log_file(), predictions=args.out, pictures=args.show_dir)
    parts = [
        listed(readable(metrics)) or NO_FIGURES,
        class_table(display_of(runner).classes),
        listed({name: near(path) for name, path in paths.items() if path is not None}),
    ]
    return '\n\n'.join(filter(None, parts))
