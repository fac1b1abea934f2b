"""Evaluate a checkpoint of a detector, a segmenter or a classifier, for ``ptnt test``."""

import copy
from pathlib import Path

from mmengine.config import Config, ConfigDict
from mmengine.runner import Runner

from ptnt_mm.weights.reader.files import require_checkpoint
from ptnt_mm.workbench.check.inspection import check_before_testing
from ptnt_mm.workbench.config.initial_weights import start_from_checkpoint
from ptnt_mm.workbench.config.read import require_keys
from ptnt_mm.workbench.config.tta import with_tta
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.evaluation_outputs import add_drawing, add_dump
from ptnt_mm.workbench.engine.failures import failed_test_explained
from ptnt_mm.workbench.engine.launcher import choose_launcher, is_first_process
from ptnt_mm.workbench.engine.run_display import display_of
from ptnt_mm.workbench.engine.runner import build_runner
from ptnt_mm.workbench.engine.work_dir import create_work_dir


def test(
    config: Config,
    checkpoint: Path | str,
    work_dir: Path | str | None = None,
    *,
    out: Path | str | None = None,
    show_dir: Path | str | None = None,
    tta: bool = False,
    launcher: str = 'none',
) -> dict[str, float]:
    """Evaluate a checkpoint as ``ptnt test`` does.

    Args:
        config: A complete config; it is not changed.
        checkpoint: A training checkpoint.
        work_dir: Folder of logs and checkpoints; by default the config's, or work_dirs/CONFIG.
        launcher: What starts the processes of a distributed run: 'none', 'pytorch', 'slurm' or
            'mpi'.
        out: File for all predictions.
        show_dir: Folder for pictures of predictions.
        tta: If True, average over the sizes and the mirroring that training used.

    Returns:
        The metrics by name; empty without any predictions.

    Raises:
        UserError: for everything that the user can fix.
    """
    runner = build_test(config, checkpoint, work_dir, out, show_dir, tta, launcher)
    return run_test(runner)


def build_test(
    config: Config,
    checkpoint: Path | str,
    work_dir: Path | str | None,
    out: Path | str | None,
    show_dir: Path | str | None,
    tta: bool,
    launcher: str,
) -> Runner:
    """Build the runner of :func:`test`, which has the same arguments."""
    require_keys(config, ('model', 'test_dataloader', 'test_cfg', 'test_evaluator'))
    view = ConfigView(copy.deepcopy(config))
    view.config.load_from, view.config.resume = str(checkpoint), False
    start_from_checkpoint(view)
    choose_launcher(view.config, launcher)
    create_work_dir(view.config, work_dir)
    view.require_files(('test',))
    require_checkpoint(checkpoint)
    augmented = with_tta(view) if tta else None
    is_first = is_first_process(view.config.launcher)
    warnings = check_before_testing(view, augmented) if is_first else []
    # The check evaluates an image, which must not be drawn or dumped.
    tested = augmented or view
    if show_dir is not None:
        add_drawing(tested, Path(show_dir).absolute())
    if out is not None:
        add_dump(tested, Path(out))
    if tta:
        tested.config.model = ConfigDict(**tested.config.tta_model, module=tested.config.model)
    runner = build_runner(tested)
    for line in warnings:
        runner.logger.warning(line)
    return runner


def run_test(runner: Runner) -> dict[str, float]:
    """Evaluate; return the metrics by name. An error is a UserError with one line."""
    with failed_test_explained(runner.logger), display_of(runner):
        return runner.test()
