"""Atomic checkpoints: a complete one always exists, and never a partial one."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmengine.dist import is_main_process, master_only
from mmengine.fileio import LocalBackend, register_backend
from mmengine.hooks import CheckpointHook, Hook
from mmengine.runner import Runner
from mmengine.utils import apply_to
from torch import Tensor

from ptnt_mm.hooks.average_buffers import AverageBuffersHook
from ptnt_mm.hooks.run_checkpoints import checkpoints_in
from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.atomic_files import remove_partials, write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.weights.networks import plain_settings
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import read_checkpoint

WHOLE_FILES = 'whole_files'
"""Name of :class:`AtomicFileBackend` for MMEngine's ``backend_args``."""


@register_backend(WHOLE_FILES)
class AtomicFileBackend(LocalBackend):
    """Local files that get their final names once all their bytes are on disk."""

    def put(self, obj: bytes, filepath: str | Path) -> None:
        """Write bytes.

        Raises:
            UserError: if the system refuses, for example because the disk is full; an existing
                file stays as it was.
        """
        write_atomically(Path(filepath), obj)


@HOOKS.register_module()
class WholeCheckpointHook(CheckpointHook):
    """MMEngine's hook, but old files are removed only after the new ones are complete.

    MMEngine removes the outdated checkpoint, or the previous best, before it begins to write, and
    writes in place. With this hook, if writing fails or another hook stops it
    (:class:`StopAtNaNHook` does at NaN), the old files stay. It takes the same arguments.

    Raises:
        UserError: if an evaluation does not report the metric in ``save_best``, or if the first
            checkpoint cannot be read again.
    """

    _was_read = False

    def before_train(self, runner: Any) -> None:
        """Write local files through :class:`AtomicFileBackend`, unless another backend is named."""
        is_local = '://' not in str(self.out_dir or runner.work_dir)
        if is_local and self.backend_args is None and self.file_client_args is None:
            self.backend_args = dict(backend=WHOLE_FILES)
        super().before_train(runner)
        if is_local and is_main_process():
            remove_partials(Path(self.out_dir))
        self.file_backend = _DeferredRemoval(self.file_backend)

    def before_save_checkpoint(self, runner: Any, checkpoint: dict) -> None:
        """Save plain tensors, and the settings of the backbone, which its weights do not show.

        No safe reader accepts the optimizer's tensors as torch.compile marks them, or the function
        that OneCycleLR keeps; a new schedule has one, too.
        """
        model = runner.cfg.get('model')
        if isinstance(model, Mapping) and isinstance(model.get('backbone'), Mapping):
            checkpoint['meta']['network'] = plain_settings(model['backbone'])
        if 'optimizer' in checkpoint:
            checkpoint['optimizer'] = apply_to(
                checkpoint['optimizer'], lambda entry: isinstance(entry, Tensor), Tensor.detach
            )
        if 'param_schedulers' in checkpoint:
            checkpoint['param_schedulers'] = _without_functions(checkpoint['param_schedulers'])

    def _save_checkpoint_with_step(self, runner: Any, step: int, meta: dict) -> None:
        for hook in runner.hooks:
            if isinstance(hook, AverageBuffersHook):
                hook.average(runner)
        super()._save_checkpoint_with_step(runner, step, meta)
        if not self._was_read and is_main_process() and Path(self.last_ckpt).is_file():
            self._was_read = True
            _require_readable(self.last_ckpt)
        self._remove_outdated()

    def _publish_model(self, runner: Any, ckpt_path: str | None) -> None:
        if ckpt_path is not None:  # as of a best one that was not evaluated again
            super()._publish_model(runner, ckpt_path)

    def _save_best_checkpoint(self, runner: Any, metrics: dict) -> None:
        if unknown := sorted({*(self.save_best or ())} - {'auto', *metrics}):
            where = 'default_hooks.checkpoint.save_best'
            raise UserError(f'{where}: {unknown_name("metric", unknown[0], metrics)}')
        super()._save_best_checkpoint(runner, metrics)
        self._remove_outdated()

    def _remove_outdated(self) -> None:
        several = getattr(self, 'best_ckpt_path_dict', {}).values()
        best = getattr(self, 'best_ckpt_path', None)
        self.file_backend.remove_all_but({self.last_ckpt, best, *several})


def _without_functions(state: Any) -> Any:
    if isinstance(state, dict):
        return {k: _without_functions(entry) for k, entry in state.items() if not callable(entry)}
    return [_without_functions(entry) for entry in state] if isinstance(state, list) else state


def _require_readable(checkpoint: str) -> None:
    """Raise a UserError if a run's checkpoint cannot be read again, before training goes on."""
    try:
        read_checkpoint(checkpoint, 'meta')
    except CheckpointError as error:
        reason = str(error).removeprefix(f'{checkpoint}: ').partition('. ')[0]  # without advice
        raise UserError(
            f'{checkpoint} was written, but cannot be read again: {reason}. Let hooks and classes '
            'of this run save only tensors, numbers and texts, and lists and dicts of these'
        ) from error


class _DeferredRemoval:
    """A storage backend that defers the removal of files.

    Args:
        backend: The storage for everything else.
    """

    def __init__(self, backend: Any):
        self._backend = backend
        self._outdated: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def remove(self, filepath: str) -> None:
        """Mark a file for removal."""
        self._outdated.append(filepath)

    def remove_all_but(self, kept: set[str]) -> None:
        """Remove the marked files, except those that were written again under the same name."""
        while self._outdated:
            outdated = self._outdated.pop()
            if outdated not in kept and self._backend.isfile(outdated):
                self._backend.remove(outdated)


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
