"""Train a detector, a segmenter or a classifier from an MMEngine config.

ptnt train retinanet_ptnt_s_1x --pretrained ptnt_s_82.0.pth.tar
"""

import argparse
import copy
import logging
import shlex
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.dist import get_world_size, is_main_process
from mmengine.runner import Runner

from ptnt_mm.check.inspection import check_before_training
from ptnt_mm.check.recipe import check_batch, check_learning_rate, say_where_weights_come_from
from ptnt_mm.checkpoints.read import refuse_forced_unsafe_loading
from ptnt_mm.cli.arguments import Parser, add_config, add_work_dir_and_launcher, resolved
from ptnt_mm.cli.commands import command_line
from ptnt_mm.engine.build import build_runner
from ptnt_mm.engine.config import read_config, require_keys
from ptnt_mm.engine.data_files import check_data_files
from ptnt_mm.engine.failures import failures_explained, late_building
from ptnt_mm.engine.launcher import choose_launcher, is_first_process
from ptnt_mm.engine.runner import how_to_repeat, log_file
from ptnt_mm.engine.starting_weights import changes, choose_start
from ptnt_mm.engine.work_dir import (
    RemoveHook,
    choose_work_dir,
    earlier_run,
    latest_checkpoint,
    locked,
    require_fresh,
)
from ptnt_mm.inference.experiment_log import BACKENDS, log_to
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Severity


@dataclass(frozen=True)
class TrainArguments:
    """The command line, resolved: what :func:`train` takes."""

    config: Config
    work_dir: Path | None
    pretrained: str | None
    resume: str | None
    overwrite: bool
    seed: int | None
    launcher: str
    command: tuple[str, ...]


def train(
    config: Config,
    work_dir: Path | str | None = None,
    *,
    pretrained: str | None = None,
    resume: str | None = None,
    overwrite: bool = False,
    seed: int | None = None,
    launcher: str = 'none',
    command: tuple[str, ...] = (),
) -> Runner:
    """Train as ``ptnt train`` does: checked first, with safeguards, repeatable.

    Args:
        config: A whole config; it is not changed.
        work_dir: Where logs and checkpoints go; by default as the config says, or
            ``work_dirs/<its name>``.
        pretrained: The backbone's weights; its stem's BatchNorm is then frozen.
        resume: A checkpoint to continue from, or 'auto' for the newest in the work dir.
        overwrite: Throw away what an earlier run left in the work dir.
        seed: Of every random choice; None for the config's, or another one each time.
        launcher: What started this process: 'none', 'pytorch', 'slurm' or 'mpi'.
        command: The words that started it, for the log.

    Returns:
        MMEngine's runner, whose ``model`` is trained.

    Raises:
        UserError: for everything that the user can mend, before work is lost.
        KeyboardInterrupt: for Ctrl-C; it says what is kept, and how to continue.
    """
    refuse_forced_unsafe_loading()
    require_keys(config, ('model', 'train_dataloader', 'train_cfg', 'optim_wrapper'))
    config = copy.deepcopy(config)
    choose_launcher(config, launcher)
    work_dir = choose_work_dir(config, work_dir)
    is_first = is_first_process(config)
    with locked(work_dir) if is_first else nullcontext():
        if config.optim_wrapper.get('type') == 'AmpOptimWrapper':
            _require_accelerator('mixed precision (--amp, AmpOptimWrapper)')
        start = choose_start(config, work_dir, pretrained, resume, seed)
        check_data_files(config, ('train', 'val'))
        if is_first and not overwrite and resume is None:
            require_fresh(work_dir)
        leftovers = _leftovers(work_dir, start.weights) if overwrite else []
        # Once is enough, and large annotation files take a while.
        warnings = check_before_training(config) if is_first else []
        runner = build_runner(config, start.checkpoint)
        runner.register_hook(RemoveHook(leftovers))
        warnings += [f'Since the checkpoint {line}' for line in changes(start.stored, runner.cfg)]
        for line in warnings:
            runner.logger.warning(line)
        _log_opening(runner.logger, config, start.weights, command)
        # The runner alone holds the checkpoint now, and frees it when it is loaded.
        del start
        try:
            with late_building(), failures_explained(runner.logger, Path(runner.work_dir)):
                runner.train()
        except KeyboardInterrupt:
            if not is_first:
                raise
            stopped = _how_to_continue(work_dir, command, resume, launcher)
            raise KeyboardInterrupt(stopped) from None
    return runner


def _how_to_continue(
    work_dir: Path, command: tuple[str, ...], resume: str | None, launcher: str
) -> str:
    """What is kept, and the command that continues."""
    checkpoint = latest_checkpoint(work_dir)
    kept = f'{checkpoint} is the last checkpoint' if checkpoint else 'no checkpoint was written yet'
    if not command:
        return f"{kept}; continue with resume='auto'"
    dropped = {'--overwrite', '--resume', f'--resume={resume}', resume}
    starter, *words = (word for word in command if word not in dropped)
    if launcher != 'none':
        starter = '(your launcher) -m ptnt_mm' if starter == 'ptnt' else '(your launcher)'
    return f'{kept}; continue with\n    {starter} {shlex.join([*words, "--resume"])}'


def _leftovers(work_dir: Path, weights: str | None) -> list[Path]:
    """What an earlier run left, to be thrown away when training begins."""
    leftovers = earlier_run(work_dir)
    if weights is not None and Path(weights).resolve() in [path.resolve() for path in leftovers]:
        raise UserError(f'--overwrite would remove {weights}, which training starts from: move it')
    return leftovers


def _log_opening(
    logger: logging.Logger, config: Config, weights: str | None, command: tuple[str, ...]
) -> None:
    """Log what one wants to know before the first iteration."""
    if is_main_process():  # the one that logs: hashing weights takes a while
        for line in how_to_repeat(command, weights):
            logger.info(line)
    gpus = get_world_size()
    for finding in (*check_batch(config, gpus), *check_learning_rate(config, gpus)):
        is_bad = finding.severity in (Severity.WARNING, Severity.ERROR)
        logger.log(logging.WARNING if is_bad else logging.INFO, str(finding))
    if weights is None:
        for finding in say_where_weights_come_from(config, weights):
            level = logging.INFO if finding.severity is Severity.OK else logging.WARNING
            logger.log(level, str(finding))


def _require_accelerator(what: str) -> None:
    if get_device() == 'cpu':
        raise UserError(f'{what} needs an accelerator, and torch finds none: leave it out on a CPU')


def main(words: list[str] | None = None) -> int:
    """Train as the command line says; the exit status."""
    return _parser().run(lambda args: _run(_resolve(args)), words)


def _parser() -> Parser:
    parser = Parser(__doc__)
    add_config(parser)
    add_work_dir_and_launcher(parser)
    parser.add_argument(
        '--pretrained',
        metavar='PATH',
        help="the backbone's weights; its stem's BatchNorm is then frozen",
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
        help='throw away what an earlier run left in the work dir',
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
        choices=BACKENDS,
        help='also log losses, metrics and some predictions there',
    )
    parser.add_argument('--seed', type=int, help='of every random choice')
    parser.add_argument(
        '--deterministic',
        action='store_true',
        help='choose operations that always give the same numbers; slower on a GPU',
    )
    return parser


def _resolve(args: argparse.Namespace) -> TrainArguments:
    """Read the config, and bring the flags into it that are settings."""
    config = read_config(args.config, args.cfg_options)
    if args.deterministic:
        config.randomness = dict(config.get('randomness') or {}, deterministic=True)
    if args.amp:
        _use_mixed_precision(config)
    if args.sync_bn:
        _require_accelerator('--sync-bn')
        config.sync_bn = 'torch'
    if args.auto_scale_lr:
        if 'base_batch_size' not in (config.get('auto_scale_lr') or {}):
            raise UserError(
                '--auto-scale-lr needs auto_scale_lr=dict(base_batch_size=...) in the config'
            )
        config.auto_scale_lr.enable = True
    if args.log is not None:
        log_to(config, args.log)
    if args.load_from is not None:
        config.load_from = args.load_from
    return resolved(TrainArguments, args, config=config, command=command_line())


def _use_mixed_precision(config: Config) -> None:
    _require_accelerator('--amp')
    require_keys(config, ('optim_wrapper',))
    # bfloat16 has the range of float32: nothing overflows, as it can in float16.
    has_bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    config.optim_wrapper.type = 'AmpOptimWrapper'
    config.optim_wrapper.dtype = 'bfloat16' if has_bfloat16 else 'float16'


def _run(arguments: TrainArguments) -> int:
    try:
        runner = train(**vars(arguments))
    except KeyboardInterrupt:
        if is_main_process():
            raise
        return 130
    if is_main_process():
        print(_closing(runner))
    return 0


def _closing(runner: Runner) -> str:
    """Where everything is, and how to see more."""
    # Here, because it imports Matplotlib: at the start, Ctrl-C then ends in a traceback.
    from ptnt_mm.visualization.curves import draw_curves

    # As it was given; the runner's own is absolute.
    work_dir = Path(runner.cfg.work_dir)
    try:
        pictures = draw_curves(work_dir, work_dir / 'curves.png')
    except (OSError, UserError) as error:
        # The weights are what counts: a run that cannot be drawn is a good run.
        pictures = f'none ({error})'
    checkpoint = latest_checkpoint(work_dir) or 'none'
    report = shlex.join(['ptnt', 'report', str(work_dir)])
    return (
        f'Done. Checkpoint: {checkpoint}  log: {log_file()}  pictures: {pictures}  report: {report}'
    )
