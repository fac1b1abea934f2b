"""``ptnt test``: evaluate a checkpoint."""

from argparse import Namespace
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.arguments import Command, Option, Switch
from ptnt_mm.workbench.cli.json_output import json_output
from ptnt_mm.workbench.cli.loading import importing
from ptnt_mm.workbench.cli.shared import (
    CHECKPOINT,
    DATA_ROOT,
    JSON,
    LAUNCHER,
    LOCAL_RANK,
    WORK_DIR,
    config_and_checkpoint_of,
    config_words,
)

# fmt: off
COMMAND = Command(
    'test',
    'evaluate a checkpoint',
    """Evaluate a checkpoint of a detector, a segmenter or a classifier.

ptnt test retinanet_ptnt_s_1x work_dirs/retinanet_ptnt_s_1x/epoch_12.pth
""",
    words=(*config_words(), DATA_ROOT, CHECKPOINT, LOCAL_RANK, *JSON),
    keywords=(
        WORK_DIR,
        LAUNCHER,
        Option('out', 'file for all predictions', Path, metavar='FILE.pkl'),
        Option('show_dir', 'folder for pictures of predictions', Path),
        Switch('tta', 'average over the sizes and the mirroring that training used'),
    ),
    order=4,
    runs_hooks=True,
)
# fmt: on


def check_arguments(args: Namespace) -> None:
    """Refuse a file of predictions with a wrong suffix."""
    if args.out is not None and args.out.suffix not in ('.pkl', '.pickle'):
        raise UserError(f'--out {args.out}: expected a name that ends in .pkl')


def run(args: Namespace) -> None:
    """Evaluate a checkpoint."""
    from ptnt_mm.utils.console import show
    from ptnt_mm.utils.terminal import show_wrapped
    from ptnt_mm.workbench.cli.summaries import after_test, before_test

    with importing():
        from mmengine.dist import is_main_process

        from ptnt_mm.workbench.engine.test import build_test, run_test

    with json_output(args.json) as write:
        config, checkpoint = config_and_checkpoint_of(args)
        runner = build_test(config, checkpoint, **COMMAND.given(args))
        if is_main_process():
            show_wrapped(before_test(runner, checkpoint))
        metrics = run_test(runner)
        if is_main_process():
            write(metrics)
            show(after_test(metrics, runner, args))
