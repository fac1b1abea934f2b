"""Train a detector, a segmenter or a classifier from an MMEngine config.

ptnt train retinanet_ptnt_s_1x --pretrained ptnt_s_82.0.pth.tar
"""

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ptnt_mm.cli.arguments import Parser, add_config, add_work_dir_and_launcher, config_of
from ptnt_mm.cli.class_table import class_table
from ptnt_mm.cli.commands import command_line
from ptnt_mm.cli.importing import importing
from ptnt_mm.utils.console import show
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.tables import listed
from ptnt_mm.utils.text import duration, near

if TYPE_CHECKING:
    from mmengine.runner import Runner


def main(words: list[str] | None = None) -> int:
    """Train; return the exit status."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    add_config(parser)
    add_work_dir_and_launcher(parser)
    parser.add_argument(
        '--pretrained',
        metavar='WEIGHTS',
        help='weights of the backbone: a file, an address, or a name from ptnt weights, such as '
        "tnt_s; freezes the stem's BatchNorm",
    )
    parser.add_argument(
        '--load-from',
        metavar='PATH',
        help='start from the weights of a whole model; heads may differ',
    )
    resume = parser.add_mutually_exclusive_group()
    resume.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='PATH',
        help='continue from a checkpoint, by default the newest in the work dir',
    )
    resume.add_argument(
        '--overwrite',
        action='store_true',
        help='delete the output of an earlier run in the work dir',
    )
    parser.add_argument('--amp', action='store_true', help='mixed precision, on an accelerator')
    parser.add_argument(
        '--auto-scale-lr', action='store_true', help='scale the learning rate with the batch'
    )
    parser.add_argument(
        '--sync-bn', action='store_true', help='BatchNorm over the images of all GPUs'
    )
    parser.add_argument(
        '--log',
        choices=('tensorboard', 'wandb', 'mlflow'),
        help='also log losses, metrics and some predictions there',
    )
    parser.add_argument('--seed', type=int, help='seed of every random choice')
    parser.add_argument(
        '--deterministic',
        action='store_true',
        help='use deterministic operations; slower on a GPU',
    )
    return parser


def _run(args: argparse.Namespace) -> None:
    with importing():
        from mmengine.dist import is_main_process

        from ptnt_mm.engine.train import train

    runner = train(
        config_of(args),
        args.work_dir,
        pretrained=args.pretrained,
        load_from=args.load_from,
        resume=args.resume,
        overwrite=args.overwrite,
        amp=args.amp,
        auto_scale_lr=args.auto_scale_lr,
        sync_bn=args.sync_bn,
        log=args.log,
        seed=args.seed,
        deterministic=args.deterministic,
        launcher=args.launcher,
        command=command_line(),
    )
    if is_main_process():
        show(_closing(runner, args))


_OF_TRAINING = (
    'train_',
    'val_',
    'optim_wrapper',
    'param_scheduler',
    'auto_scale_lr',
    'default_hooks',
)
"""How settings begin that prediction does not read."""


def _closing(runner: 'Runner', args: argparse.Namespace) -> str:
    """The scores of the best evaluation, the paths of the results, and the next commands."""
    from ptnt_mm.drawing.curves import draw_curves
    from ptnt_mm.engine.run_checkpoints import best_checkpoint, latest_checkpoint
    from ptnt_mm.engine.run_display import display_of
    from ptnt_mm.engine.runner import log_file

    # As it was given; the runner's path is absolute.
    work_dir = Path(runner.cfg.work_dir)
    try:
        curves = draw_curves(work_dir, work_dir / 'curves.png')
    except (OSError, UserError) as error:
        # Only the weights matter: a run that cannot be drawn is still successful.
        curves = None
        show(f'warning: no curves were drawn: {error}')
    last, best = latest_checkpoint(work_dir), best_checkpoint(work_dir)
    paths = dict(
        checkpoint=last, best=None if best == last else best, log=log_file(), curves=curves
    )
    following = [f'  {shlex.join(["ptnt", "report", str(work_dir)])}']
    if best:
        # In its own work dir, the checkpoint of an unchanged config is found without its name.
        options = [word for word in args.cfg_options or () if not word.startswith(_OF_TRAINING)]
        changed = [str(best)] if args.work_dir or options else []
        options = ['--cfg-options', *options] if options else []
        words = ['ptnt', 'infer', 'PHOTOS', args.config, *changed, *options]
        following.append(f'  {shlex.join(words)}')
    display = display_of(runner)
    parts = [
        f'Done in {duration(display.took)}{display.summary and ": "}{display.summary}',
        class_table(display.classes),
        listed({name: near(path) for name, path in paths.items() if path}),
        '\n'.join(['Next:', *following]),
    ]
    return '\n\n'.join(filter(None, parts))
