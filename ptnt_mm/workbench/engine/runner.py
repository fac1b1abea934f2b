"""MMEngine's runner with a readable console, the hooks of every run, and its first log lines."""

import logging
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.logging import MessageHub, MMLogger
from mmengine.registry import RUNNERS
from mmengine.runner import BaseLoop, Runner
from mmengine.runner.checkpoint import _load_checkpoint_to_model
from mmengine.visualization import Visualizer
from torch.utils.data import DataLoader

from ptnt_mm.mmcv_ops.installation import source
from ptnt_mm.utils.atomic_files import sha256
from ptnt_mm.utils.terminal import FOR_THE_FILE, use_terminal
from ptnt_mm.utils.versions import VERSIONS, installed, provider
from ptnt_mm.utils.wrappers import unwrapped
from ptnt_mm.weights.mmengine import require_safe_loading
from ptnt_mm.workbench.config.build_errors import explained_building, explained_late_building
from ptnt_mm.workbench.config.causes import Kind, explain
from ptnt_mm.workbench.config.hosts import forget_copies, import_host
from ptnt_mm.workbench.config.safeguards import with_safeguards
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.class_scores import keeping_class_scores
from ptnt_mm.workbench.engine.epochs import without_empty
from ptnt_mm.workbench.engine.run_display import RunDisplay

_SECOND = '%Y%m%d_%H%M%S'  # as in Runner.setup_env
_PACKAGES = ('ptnt_mm', 'torchvision', 'mmcv', 'numpy', *VERSIONS)


class QuietRunner(Runner):
    """A runner with a short console and errors that a user can act on.

    The log file has everything that MMEngine logs; `ptnt_mm.utils.terminal` decides what the
    terminal shows. Settings that a constructor refuses raise a UserError.
    """

    checkpoint: dict | None = None
    """Loaded content of the checkpoint to resume, on the CPU; None to read it."""

    def build_logger(
        self, log_level: int | str = 'INFO', log_file: str | None = None, **kwargs
    ) -> MMLogger:
        """Build MMEngine's logger; the arguments are those of ``Runner.build_logger``."""
        logger = super().build_logger(log_level, log_file, **kwargs)
        use_terminal(logger)
        for handler in logger.handlers:
            if isinstance(handler, logging.FileHandler):
                handler.handleError = partial(_report_unless_full, handler.handleError)
        return logger

    def build_visualizer(self, visualizer: Any = None) -> Visualizer:
        """Build the visualizer; the argument is that of ``Runner.build_visualizer``.

        It is named after the run. The hosts' configs state a name, by which all runs of a process
        would share the visualizer of the first, and its folder.
        """
        if isinstance(visualizer, Mapping):
            visualizer = {key: value for key, value in visualizer.items() if key != 'name'}
        return super().build_visualizer(visualizer)

    # What MMEngine builds when a run starts, with errors that name it.

    def build_train_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Build the training loop, and its data loader."""
        with explained_late_building('the training loop'):
            return super().build_train_loop(loop)

    def build_val_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Build the validation loop, its data loader and its evaluator."""
        with explained_late_building('the validation loop'):
            return super().build_val_loop(loop)

    def build_test_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Build the test loop, its data loader and its evaluator."""
        with explained_late_building('the test loop'):
            return super().build_test_loop(loop)

    def build_evaluator(self, evaluator: Any) -> Any:
        """Build an evaluator; the argument is that of ``Runner.build_evaluator``.

        Its metrics keep the scores of each class.
        """
        with explained_late_building('the evaluator'):
            return super().build_evaluator(keeping_class_scores(evaluator))

    @staticmethod
    def build_dataloader(*args: Any, **kwargs: Any) -> DataLoader:
        """Build a data loader; the arguments are those of ``Runner.build_dataloader``."""
        forget_copies()
        with explained_late_building('the data loader'):
            return Runner.build_dataloader(*args, **kwargs)

    def build_optim_wrapper(self, optim_wrapper: Any) -> Any:
        """Build the optimizer; the argument is that of ``Runner.build_optim_wrapper``."""
        with explained_late_building('the optimizer'):
            return super().build_optim_wrapper(optim_wrapper)

    def build_param_scheduler(self, scheduler: Any) -> Any:
        """Build the schedules; the argument is that of ``Runner.build_param_scheduler``."""
        with explained_late_building('the schedule of the learning rate'):
            if scheduler:
                scheduler = without_empty(scheduler, len(self.train_dataloader))
            return super().build_param_scheduler(scheduler)

    def load_checkpoint(self, filename: str, *args: Any, **kwargs: Any) -> dict:
        """Load weights as ``Runner.load_checkpoint`` does, but read no file twice."""
        if self.checkpoint is None:
            return super().load_checkpoint(filename, *args, **kwargs)
        # From here on only MMEngine references it, and frees it after copying.
        checkpoint, self.checkpoint = self.checkpoint, None
        self.call_hook('after_load_checkpoint', checkpoint=checkpoint)
        model = unwrapped(self.model)
        _load_checkpoint_to_model(model, checkpoint)
        self.logger.info(f'Load checkpoint from {filename}', extra=FOR_THE_FILE)
        return checkpoint


def build_runner(view: ConfigView, checkpoint: dict | None = None) -> Runner:
    """Import the host library and build the runner, with the hooks that every run gets.

    From here on, MMEngine loads checkpoints safely.

    Args:
        view: The config; it is not changed.
        checkpoint: The loaded content of the checkpoint to resume, so that it is not read again.

    Raises:
        UserError: if the host cannot be imported, or a constructor refuses its arguments.
    """
    require_safe_loading()
    import_host(view.scope)
    config = with_safeguards(view)
    _wait_for_a_free_name(config)
    with explained_building(view.name):
        if 'runner_type' in config:
            runner = RUNNERS.build(config)
            use_terminal(runner.logger)
        else:
            runner = QuietRunner.from_cfg(config)
            runner.checkpoint = checkpoint
    runner.register_hook(RunDisplay())
    return runner


def _report_unless_full(report: Callable, record: logging.LogRecord) -> None:
    """Report that a record cannot be written, but not that the disk is full.

    The metrics next to the log cannot be written either: that stops the run with one line, and
    needs no traceback for each line of the log.
    """
    if not explain(sys.exception(), Kind.DISK):
        report(record)


def _wait_for_a_free_name(config: Config) -> None:
    """Wait for the next second if this process began a run of the same name in this one.

    MMEngine names a run's logger, message hub and visualizer after its config and the second of its
    start; the later of two runs of one name would log into the folder of the other.
    """
    name = config.get('experiment_name') or Path(config.filename or '').stem
    prefix = f'{name}_' if name else ''
    while MessageHub.check_instance_created(prefix + time.strftime(_SECOND)):
        time.sleep(0.05)


def log_file() -> Path:
    """The file that MMEngine's current logger writes."""
    handlers = MMLogger.get_current_instance().handlers
    files = (item for item in handlers if isinstance(item, logging.FileHandler))
    return Path(next(files).baseFilename)


def how_to_repeat(command: Sequence[str], weights: str | None) -> Iterator[str]:
    """Lines that make a run repeatable from its log, in addition to MMEngine's.

    They contain the command, if there was one, versions, operators, revision and starting weights.
    """
    if command:
        yield f'Command: {shlex.join(command)} in {Path.cwd()}'
    found = {provider(package): installed(package) for package in _PACKAGES}
    yield 'Versions: ' + ', '.join(f'{name} {found[name]}' for name in found if found[name])
    operators = source()
    yield f"mmcv's operators: {operators.kind}" + (f' ({operators.file})' if operators.file else '')
    yield f'Revision of {Path.cwd()}: {_revision(Path.cwd())}'
    file = None if weights is None else Path(weights).expanduser()
    if file is not None and file.is_file():
        yield f'Weights: {weights}, SHA-256 {sha256(file)}'


def _revision(folder: Path) -> str:
    """Git's commit, and whether files differ from it."""
    command = ['git', '-C', str(folder), 'describe', '--always', '--dirty', '--abbrev=40']
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return 'unknown (git did not answer)'
    return done.stdout.strip() or 'none (no git checkout)'
