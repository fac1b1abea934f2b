"""Training from a command line: what ``tools/train.py`` does."""

import argparse
import logging
import shlex
import sys
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.dist import get_world_size, is_main_process
from mmengine.runner import Runner

from ptnt_mm.check.finding import Severity
from ptnt_mm.check.inspection import check_before_training
from ptnt_mm.check.recipe import check_batch, check_learning_rate, check_there_are_weights
from ptnt_mm.engine.build import (
    build_runner,
    choose_launcher,
    choose_work_dir,
    late_building,
)
from ptnt_mm.engine.cli import is_first_process
from ptnt_mm.engine.config import read_config, require_keys
from ptnt_mm.engine.data_files import check_data_files
from ptnt_mm.engine.start import check_start, starting_weights, use_pretrained, use_resume
from ptnt_mm.engine.work_dir import RemoveHook, earlier_run, latest_checkpoint, require_fresh
from ptnt_mm.errors import UserError
from ptnt_mm.safe_pickle import refuse_forced_unsafe_loading
from ptnt_mm.visualization.curves import draw_curves


def train(args: argparse.Namespace) -> int:
    """Train as the command line says; the exit status.

    Raises:
        UserError: for everything that the user can mend, before work is lost.
    """
    refuse_forced_unsafe_loading()
    config = read_config(args.config, args.cfg_options)
    require_keys(config, ('model', 'train_dataloader', 'train_cfg', 'optim_wrapper'))
    choose_launcher(config, args.launcher)
    work_dir = choose_work_dir(config, args.work_dir)
    _apply(args, config, work_dir)
    check_data_files(config, ('train', 'val'))
    leftovers = _leftovers(args, config, work_dir)
    # Once is enough, and large annotation files take a while.
    warnings = check_before_training(config) if is_first_process() else []
    runner = build_runner(config)
    runner.register_hook(RemoveHook(leftovers))
    for level, line in [*((logging.WARNING, line) for line in warnings), *_opening(config)]:
        runner.logger.log(level, line)
    try:
        with late_building():
            runner.train()
    except KeyboardInterrupt:
        if is_main_process():
            print(_interrupted(args, work_dir), file=sys.stderr)
        return 130
    if is_main_process():
        print(_closing(runner, work_dir))
    return 0


def _leftovers(args: argparse.Namespace, config: Config, work_dir: Path) -> list[Path]:
    """What an earlier run left and may be thrown away.

    Raises:
        UserError: if it may not: unasked, or because training starts from it.
    """
    if config.resume:
        return []
    if not args.overwrite:
        if is_first_process():
            require_fresh(work_dir)
        return []
    leftovers = earlier_run(work_dir)
    start = starting_weights(config)
    if start is not None and Path(start).resolve() in [path.resolve() for path in leftovers]:
        raise UserError(f'--overwrite would remove {start}, which training starts from: move it')
    return leftovers


def _apply(args: argparse.Namespace, config: Config, work_dir: Path) -> None:
    """Bring the flags into the config."""
    if args.seed is not None:
        config.randomness = dict(config.get('randomness') or {}, seed=args.seed)
    if args.amp:
        _use_mixed_precision(config)
    if args.auto_scale_lr:
        if 'base_batch_size' not in (config.get('auto_scale_lr') or {}):
            raise UserError(
                '--auto-scale-lr needs auto_scale_lr=dict(base_batch_size=...) in the config'
            )
        config.auto_scale_lr.enable = True
    if args.pretrained is not None:
        use_pretrained(config, args.pretrained)
    if args.load_from is not None:
        config.load_from = args.load_from
    if args.resume is not None:
        use_resume(config, args.resume, work_dir)
    check_start(config)


def _use_mixed_precision(config: Config) -> None:
    if get_device() == 'cpu':
        raise UserError('--amp needs an accelerator, and torch finds none: leave it out on a CPU')
    # bfloat16 has the range of float32: nothing overflows, as it can in float16.
    has_bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    config.optim_wrapper.type = 'AmpOptimWrapper'
    config.optim_wrapper.dtype = 'bfloat16' if has_bfloat16 else 'float16'


def _opening(config: Config) -> list[tuple[int, str]]:
    """What one wants to know before the first iteration, by the level it is logged at."""
    gpus = get_world_size()
    levels = {Severity.ERROR: logging.ERROR, Severity.WARNING: logging.WARNING}
    findings = [*check_batch(config, gpus), *check_learning_rate(config, gpus)]
    lines = [(levels.get(finding.severity, logging.INFO), str(finding)) for finding in findings]
    if starting_weights(config) is None:
        lines += [(logging.WARNING, str(finding)) for finding in check_there_are_weights(config)]
    return lines


def _interrupted(args: argparse.Namespace, work_dir: Path) -> str:
    """What is kept, and the command that continues."""
    dropped = {'--overwrite', '--resume', f'--resume={args.resume}', args.resume}
    words = [word for word in sys.argv if word not in dropped]
    starter = 'python' if args.launcher == 'none' else '(your launcher)'
    checkpoint = latest_checkpoint(work_dir)
    kept = f'{checkpoint} is the last checkpoint' if checkpoint else 'no checkpoint was written yet'
    return f'\nStopped. {kept}; continue with\n    {starter} {shlex.join([*words, "--resume"])}'


def _closing(runner: Runner, work_dir: Path) -> str:
    """Where everything is."""
    log = Path(runner.log_dir) / f'{runner.timestamp}.log'
    try:
        pictures = draw_curves(work_dir, work_dir / 'curves.png')
    except (ImportError, OSError, UserError) as error:
        # The weights are what counts: a run that cannot be drawn is a good run.
        pictures = f'none ({error})'
    checkpoint = latest_checkpoint(work_dir) or 'none'
    return f'Done. Checkpoint: {checkpoint}  log: {log}  pictures: {pictures}'
