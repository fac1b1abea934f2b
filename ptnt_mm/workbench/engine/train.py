"""Train a detector, a segmenter or a classifier, for ``ptnt train``."""

import copy
import logging
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path

from mmengine.config import Config
from mmengine.dist import get_world_size, is_main_process
from mmengine.runner import Runner

from ptnt_mm.hooks.checkpointing import RemoveEarlierRunHook
from ptnt_mm.hooks.run_checkpoints import describe_last_checkpoint, require_fresh
from ptnt_mm.utils.findings import Severity
from ptnt_mm.utils.terminal import FOR_THE_FILE
from ptnt_mm.weights.published import require_weights
from ptnt_mm.workbench.check.inspection import check_before_training
from ptnt_mm.workbench.check.schedule import check_batch, check_learning_rate
from ptnt_mm.workbench.check.weights import describe_start
from ptnt_mm.workbench.config.read import require_keys
from ptnt_mm.workbench.config.stored import changed_settings
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.failures import failures_explained
from ptnt_mm.workbench.engine.launcher import choose_launcher, is_first_process, require_same_start
from ptnt_mm.workbench.engine.modes import use_modes
from ptnt_mm.workbench.engine.run_display import display_of
from ptnt_mm.workbench.engine.run_start import Start, choose_start, resume_of
from ptnt_mm.workbench.engine.runner import build_runner, how_to_repeat
from ptnt_mm.workbench.engine.work_dir import create_work_dir, lock_work_dir


def train(
    config: Config,
    work_dir: Path | str | None = None,
    *,
    pretrained: Path | str | None = None,
    load_from: Path | str | None = None,
    resume: Path | str | None = None,
    overwrite: bool = False,
    epochs: int | None = None,
    amp: bool = False,
    auto_scale_lr: bool = False,
    sync_bn: bool = False,
    log: str | None = None,
    seed: int | None = None,
    deterministic: bool = False,
    launcher: str = 'none',
    command: tuple[str, ...] = (),
) -> Runner:
    """Train as ``ptnt train`` does: with checks, safeguards and repeatable random numbers.

    Args:
        config: A complete config; it is not changed.
        command: The command line, for the log.
        work_dir: Folder of logs and checkpoints; by default the config's, or work_dirs/CONFIG.
        launcher: What starts the processes of a distributed run: 'none', 'pytorch', 'slurm' or
            'mpi'.
        pretrained: Weights of the backbone: a file, an address, hf:OWNER/NAME, or a name from ptnt
            weights, such as tnt_s; freezes the stem's BatchNorm.
        load_from: Start from the weights of a whole model, or of another project; heads may differ.
        resume: Continue from a checkpoint, by default the newest in the work dir ('auto').
        overwrite: If True, delete the output of an earlier run in the work dir.
        epochs: Number of epochs; by default the config's. The learning rate, pipeline switches,
            weight averaging and evaluations are adjusted to it.
        amp: If True, mixed precision, on an accelerator or a CPU that computes in bfloat16.
        auto_scale_lr: If True, scale the learning rate with the batch.
        sync_bn: If True, BatchNorm over the images of all GPUs.
        log: Also log losses, metrics and some predictions there: 'tensorboard', 'wandb' or
            'mlflow'.
        seed: Seed of every random choice; by default the config's, or a new one.
        deterministic: If True, use deterministic operations; slower on a GPU.

    Returns:
        MMEngine's runner, whose ``model`` is trained.

    Raises:
        UserError: for everything that the user can fix, before work is lost.
        KeyboardInterrupt: for Ctrl-C, with what is kept and how to continue.
        SystemExit: instead of it in all processes but the first, which reports for all of them.
    """
    require_keys(config, ('model', 'train_dataloader', 'train_cfg', 'optim_wrapper'))
    if pretrained is not None and resume is None and not config.get('resume'):
        require_weights(str(pretrained))  # before the host is imported
    view = ConfigView(copy.deepcopy(config))
    use_modes(
        view,
        epochs=epochs,
        amp=amp,
        sync_bn=sync_bn,
        auto_scale_lr=auto_scale_lr,
        log=log,
        deterministic=deterministic,
    )
    choose_launcher(view.config, launcher)
    work_dir = create_work_dir(view.config, work_dir)
    is_first = is_first_process(view.config.launcher)
    if resume is None and not overwrite:
        resume = resume_of(config, load_from)
    with lock_work_dir(work_dir) if is_first else nullcontext():
        start = choose_start(view, work_dir, pretrained, load_from, resume, seed)
        view.require_files(('train', 'val'))
        # Before anything is built: it may refuse, and sees only what an earlier run left.
        hooks = [RemoveEarlierRunHook(work_dir, start.weights)] if overwrite else []
        if is_first and not overwrite and resume is None:
            require_fresh(work_dir)
        # Once is enough, and large annotation files take a while.
        warnings = check_before_training(view) if is_first else []
        runner = build_runner(view, start.checkpoint)
        require_same_start(start.checkpoint)
        runner.register_custom_hooks(hooks)
        if resume is not None and start.checkpoint is None:
            runner.logger.info(f'{work_dir} has no checkpoint yet: starting from iteration 1')
        _log_opening(runner, view, start, warnings, command, epochs)
        # Only the runner references the checkpoint now, and frees it after loading.
        del start
        with (
            _interruption_explained(work_dir, command, resume, launcher),
            failures_explained(runner.logger, Path(runner.work_dir)),
            display_of(runner),
        ):
            runner.train()
    return runner


_OF_EPOCHS = ('train_cfg', 'param_scheduler', 'custom_hooks', 'default_hooks.checkpoint')
"""How settings begin that the argument ``epochs`` changes."""


def _log_opening(
    runner: Runner,
    view: ConfigView,
    start: Start,
    warnings: list[str],
    command: tuple[str, ...],
    epochs: int | None,
) -> None:
    """Log the setup before the first iteration."""
    logger = runner.logger
    for line in warnings:
        logger.warning(line)
    for line in changed_settings(start.stored, runner.cfg):
        if epochs is None or not line.startswith(_OF_EPOCHS):
            logger.warning(f'Changed since the checkpoint: {line}')
    if is_main_process():  # the one that logs: hashing weights takes a while
        for line in how_to_repeat(command, start.weights):
            logger.info(line, extra=FOR_THE_FILE)
    gpus = get_world_size()
    for finding in (*check_batch(view, gpus), *check_learning_rate(view, gpus)):
        is_bad = finding.severity in (Severity.WARNING, Severity.ERROR)
        logger.log(logging.WARNING if is_bad else logging.INFO, str(finding))
    if start.weights is None:
        for finding in describe_start(view, None):
            level = logging.INFO if finding.severity is Severity.OK else logging.WARNING
            logger.log(level, str(finding))


@contextmanager
def _interruption_explained(
    work_dir: Path, command: tuple[str, ...], resume: Path | str | None, launcher: str
) -> Iterator[None]:
    """Explain Ctrl-C; all processes get it, and only the first one reports it."""
    is_first = is_main_process()
    try:
        yield
    except KeyboardInterrupt:
        if not is_first:
            raise SystemExit(128 + signal.SIGINT) from None
        stopped = _how_to_continue(work_dir, command, resume, launcher)
        raise KeyboardInterrupt(stopped) from None


def _how_to_continue(
    work_dir: Path, command: tuple[str, ...], resume: Path | str | None, launcher: str
) -> str:
    """Describe what is kept, and the command that continues the run."""
    kept, again = describe_last_checkpoint(work_dir)
    if not command:
        return f"{kept}; {again} with resume='auto'"
    starter, dropped = command[0], {'--overwrite', '--resume', f'--resume={resume}'}
    words = [
        word
        for before, word in pairwise(command)
        if word not in dropped and (before, word) != ('--resume', str(resume))
    ]
    if launcher != 'none':
        starter = '(your launcher) -m ptnt_mm' if starter == 'ptnt' else '(your launcher)'
    return f'{kept}; {again} with\n    {starter} {shlex.join([*words, "--resume"])}'
