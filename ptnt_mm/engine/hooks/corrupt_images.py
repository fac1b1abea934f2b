"""Going on past images and masks that cannot be read, up to a number."""

import logging
import multiprocessing
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from mmengine.hooks import Hook
from mmengine.logging import print_log

from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.errors import UserError


@HOOKS.register_module()
class SkipCorruptImagesHook(Hook):
    """Take another image in place of one that cannot be read; stop when there are too many.

    Each is named in the log, as is a mask that cannot be read. MMEngine's data sets do the
    replacing; mmdet's and mmseg's training would end at the first of them. Each file is counted
    once, even if it comes again in a later epoch or in repeated data. Each process counts its own
    files, and starts again from 0 when a training is resumed. Annotations that do not come from a
    file of their own, such as boxes, stop a training at once.

    Iteration-based training needs :class:`RepeatableIterBasedTrainLoop`: MMEngine's own loop starts
    its workers before any hook is called.

    Args:
        limit: How many files may be left out; 0 stops at the first.

    Raises:
        UserError: if the limit is not a whole number from 0. Training raises one when there are
            more.
    """

    # After hooks that change the pipeline, and before workers are started.
    priority = 'LOW'

    def __init__(self, limit: int = 10):
        if not isinstance(limit, int) or limit < 0:
            raise UserError(
                f'SkipCorruptImagesHook(limit={limit!r}): expected how many files may be left '
                'out, an int from 0 on'
            )
        self._unreadable = _Unreadable(limit)

    def before_train_epoch(self, runner: Any) -> None:
        """Watch over the steps that read files, before workers get copies of them."""
        for data_set in _with_pipelines(runner.train_dataloader.dataset):
            steps = data_set.pipeline.transforms
            for number, step in enumerate(steps):
                # The first one, whatever its name, and those that read masks.
                reads = number == 0 or type(step).__name__.startswith('Load')
                if reads and not isinstance(step, _Watched):
                    steps[number] = _Watched(step, self._unreadable)


class _Unreadable:
    """The files that could not be read; the workers of data loaders share it."""

    def __init__(self, limit: int):
        self.limit = limit
        # Hashes of their names, which are the same in every process; -1 is a free place.
        self._hashes = multiprocessing.Array('q', [-1] * (limit + 1))

    def add(self, file: str) -> tuple[bool, int]:
        """Remember a file: whether it is a new one, and how many there are, at most limit + 1."""
        found = zlib.crc32(os.fsencode(file))
        with self._hashes.get_lock():
            known = self._hashes[:]
            is_new = found not in known
            if is_new and -1 in known:
                self._hashes[known.index(-1)] = found
            return is_new, sum(number >= 0 for number in self._hashes[:])


class _Watched:
    """A step of a pipeline that gives None where it fails, and raises when it fails too often."""

    def __init__(self, read: Callable[[dict], dict | None], unreadable: _Unreadable):
        self.read = read
        self.unreadable = unreadable

    def __call__(self, results: dict) -> dict | None:
        try:
            return self.read(results)
        except Exception as error:  # decoders may raise anything
            if 'Annotation' in type(self.read).__name__:
                file = results.get('seg_map_path')
            else:
                file = str(results.get('img_path') or f'image {results.get("sample_idx")}')
            if file is None:
                # Other annotations come from no file of their own.
                raise
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            is_new, count = self.unreadable.add(file)
            if is_new:
                what = f'{file} cannot be read and is left out: {reason}'
                print_log(what, logger='current', level=logging.WARNING)
            # Here and not after the iteration: where every image fails, none ever ends.
            if count > self.unreadable.limit:
                raise UserError(
                    f'{count} images or masks could not be read; the log names them. The last one '
                    f'is {file}: {reason}. Mend them (ptnt check finds all), or allow more with '
                    "custom_hooks=[dict(type='SkipCorruptImagesHook', limit=...), ...]"
                ) from error
            return None


def _with_pipelines(data_set: Any) -> Iterator[Any]:
    """The data sets with pipelines inside of what repeats or joins them."""
    parts = getattr(data_set, 'datasets', None) or [getattr(data_set, 'dataset', None)]
    if parts != [None]:
        for part in parts:
            yield from _with_pipelines(part)
    elif hasattr(data_set, 'pipeline'):
        yield data_set
