"""Prepare a run: the one copy of its config, rewritten before anything is checked or built."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config

from ptnt_mm.config.view import ConfigView
from ptnt_mm.engine.launcher import choose_launcher, is_first_process
from ptnt_mm.engine.work_dir import create_work_dir


@dataclass(frozen=True)
class Run:
    """A run that can be checked and built.

    Attributes:
        view: Its config, a copy of the user's.
        work_dir: The folder of its logs and checkpoints.
        is_first: Whether this is the process that prints and writes.
    """

    view: ConfigView
    work_dir: Path
    is_first: bool


def prepare(
    config: Config,
    rewrite: Callable[[ConfigView], None],
    work_dir: Path | str | None,
    launcher: str,
) -> Run:
    """Copy a config, write what was chosen into the copy, and create the work dir.

    What depends on the files in the work dir follows once that is locked, see
    :func:`~ptnt_mm.engine.run_start.choose_start`.

    Args:
        config: It is not changed.
        rewrite: Writes options into the config of a view.
        work_dir: See :func:`~ptnt_mm.engine.work_dir.find_work_dir`.
        launcher: What started this process.

    Raises:
        UserError: if ``rewrite`` does, if the launcher did not start this process, or if the work
            dir cannot be written to.
    """
    view = ConfigView(copy.deepcopy(config))
    rewrite(view)
    choose_launcher(view.config, launcher)
    work_dir = create_work_dir(view.config, work_dir)
    return Run(view, work_dir, is_first_process(view.config))
