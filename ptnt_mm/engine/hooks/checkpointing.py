"""Atomic checkpoints: a complete one always exists, and never a partial one."""

from pathlib import Path
from typing import Any

from mmengine.dist import is_main_process
from mmengine.fileio import LocalBackend, register_backend
from mmengine.hooks import CheckpointHook

from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.atomic_files import remove_partials, write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name

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
        UserError: if an evaluation does not report the metric in ``save_best``.
    """

    def before_train(self, runner: Any) -> None:
        """Write local files through :class:`AtomicFileBackend`, unless another backend is named."""
        is_local = '://' not in str(self.out_dir or runner.work_dir)
        if is_local and self.backend_args is None and self.file_client_args is None:
            self.backend_args = dict(backend=WHOLE_FILES)
        super().before_train(runner)
        if is_local and is_main_process():
            remove_partials(Path(self.out_dir))
        self.file_backend = _DeferredRemoval(self.file_backend)

    def _save_checkpoint_with_step(self, runner: Any, step: int, meta: dict) -> None:
        super()._save_checkpoint_with_step(runner, step, meta)
        self._remove_outdated()

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
