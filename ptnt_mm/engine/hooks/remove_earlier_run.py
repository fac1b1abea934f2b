"""Delete the output of an earlier run, for ``--overwrite``."""

import re
import shutil
from pathlib import Path

from mmengine.dist import master_only
from mmengine.hooks import Hook
from mmengine.runner import Runner

from ptnt_mm.engine.run_checkpoints import checkpoints_in
from ptnt_mm.utils.errors import UserError

_TIMESTAMP = re.compile(r'\d{8}_\d{6}')  # of a folder with logs


class RemoveEarlierRunHook(Hook):
    """Delete an earlier run's checkpoints and logs once everything is built and loaded.

    Args:
        work_dir: The checkpoints and logs that are in it now are deleted when training begins.
        weights: The file or address that training starts from, if any.

    Raises:
        UserError: if the weights would be deleted.
    """

    def __init__(self, work_dir: Path, weights: str | None):
        folders = (path for path in work_dir.glob('*') if path.is_dir())
        logs = [path for path in folders if _TIMESTAMP.fullmatch(path.name)]
        self._paths = [*checkpoints_in(work_dir), *work_dir.glob('last_checkpoint'), *logs]
        if weights is not None and Path(weights).resolve() in [p.resolve() for p in self._paths]:
            raise UserError(
                f'`overwrite=True` would remove {weights}, which training starts from: move it'
            )

    @master_only
    def before_train(self, runner: Runner) -> None:
        """Delete the files and folders."""
        for path in self._paths:
            is_folder = path.is_dir() and not path.is_symlink()
            shutil.rmtree(path) if is_folder else path.unlink(missing_ok=True)
