"""Training from a command line: what ``tools/train.py`` does."""

import argparse
import logging
import shlex
import sys
from contextlib import nullcontext
from pathlib import Path

from mmengine.config import Config
from mmengine.dist import get_world_size, is_main_process
from mmengine.runner import Runner

from ptnt_mm.check.inspection import check_before_training
from ptnt_mm.check.recipe import check_batch, check_learning_rate, check_there_are_weights
from ptnt_mm.checkpoints.read import refuse_forced_unsafe_loading
from ptnt_mm.engine.build import build_runner, choose_work_dir, late_building
from ptnt_mm.engine.config import read_config, require_keys
from ptnt_mm.engine.data_files import check_data_files
from ptnt_mm.engine.failure import failures_explained
from ptnt_mm.engine.flags import apply_flags
from ptnt_mm.engine.header import header
from ptnt_mm.engine.lock import locked
from ptnt_mm.engine.processes import choose_launcher, is_first_process
from ptnt_mm.engine.safeguards import use_safeguards
from ptnt_mm.engine.start import changes, starting_weights
from ptnt_mm.engine.work_dir import RemoveHook, earlier_run, latest_checkpoint, require_fresh
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Severity
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
    with locked(work_dir) if is_first_process(config) else nullcontext():
        return _train(args, config, work_dir)


def _train(args: argparse.Namespace, config: Config, work_dir: Path) -> int:
    """Train in a work dir that nobody else trains in."""
    stored = apply_flags(args, config, work_dir)
    check_data_files(config, ('train', 'val'))
    leftovers = _leftovers(args, config, work_dir)
    # Once is enough, and large annotation files take a while.
    warnings = check_before_training(config) if is_first_process(config) else []
    use_safeguards(config)
    runner = build_runner(config)
    runner.register_hook(RemoveHook(leftovers))
    warnings += [f'Since the checkpoint {line}' for line in changes(stored, runner.cfg)]
    for level, line in [*((logging.WARNING, line) for line in warnings), *_opening(config)]:
        runner.logger.log(level, line)
    try:
        with late_building(), failures_explained(runner.logger):
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
    if args.resume is not None:
        return []
    if not args.overwrite:
        if is_first_process(config):
            require_fresh(work_dir)
        return []
    leftovers = earlier_run(work_dir)
    start = starting_weights(config)
    if start is not None and Path(start).resolve() in [path.resolve() for path in leftovers]:
        raise UserError(f'--overwrite would remove {start}, which training starts from: move it')
    return leftovers


def _opening(config: Config) -> list[tuple[int, str]]:
    """What one wants to know before the first iteration, by the level it is logged at."""
    gpus = get_world_size()
    # Hashing weights is for the process that logs.
    about = header(starting_weights(config)) if is_main_process() else []
    lines = [(logging.INFO, line) for line in about]
    levels = {Severity.ERROR: logging.ERROR, Severity.WARNING: logging.WARNING}
    findings = [*check_batch(config, gpus), *check_learning_rate(config, gpus)]
    lines += [(levels.get(finding.severity, logging.INFO), str(finding)) for finding in findings]
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
