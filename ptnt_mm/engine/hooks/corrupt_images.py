"""Going on past images and masks that cannot be read, up to a number."""

import logging
import multiprocessing
from collections.abc import Callable, Iterator
from typing import Any

from mmengine.hooks import Hook
from mmengine.logging import print_log

from ptnt_mm.engine.passes import ends_a_pass
from ptnt_mm.errors import UserError
from ptnt_mm.registry import HOOKS


@HOOKS.register_module()
class SkipCorruptImagesHook(Hook):
    """Take another image in place of one that cannot be read; stop when there are too many.

    Each is named in the log, as is a mask that cannot be read. MMEngine's data sets do the
    replacing; mmdet's and mmseg's training would end at the first of them. Processes count for
    themselves, and workers that load ahead of the end of a pass count for that pass.

    Iteration-based training needs :class:`RepeatableIterBasedTrainLoop`: MMEngine's own loop starts
    its workers before any hook is called.

    Args:
        limit: How many may be left out in a pass through the data; 0 stops at the first.
    """

    # After hooks that change the pipeline, and before workers are started.
    priority = 'LOW'

    def __init__(self, limit: int = 10):
        self.limit = limit
        # The workers of data loaders count together.
        self._count = multiprocessing.Value('i', 0)
        self._earlier = 0

    def before_train_epoch(self, runner: Any) -> None:
        """Watch over the steps that read files, before workers get copies of them."""
        for data_set in _with_pipelines(runner.train_dataloader.dataset):
            steps = data_set.pipeline.transforms
            if any(isinstance(step, _Watched) for step in steps):
                continue
            for number, step in enumerate(steps):
                # The first one, whatever its name, and those that read masks.
                if number == 0 or type(step).__name__.startswith('Load'):
                    steps[number] = _Watched(step, self._count)

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Compare the count with the limit; after a pass the same images come again.

        Raises:
            UserError: if there were more.
        """
        found = self._count.value - self._earlier
        if found > self.limit:
            raise UserError(
                f'{found} images could not be read in this pass through the data; the log names '
                'them. Mend them (tools/check_config.py finds all), or allow more with '
                "custom_hooks=[dict(type='SkipCorruptImagesHook', limit=...), ...]"
            )
        if ends_a_pass(runner):
            self._earlier += found


class _Watched:
    """A step of a pipeline that gives None where it fails.

    Args:
        read: The step.
        count: Shared between processes.
    """

    def __init__(self, read: Callable[[dict], dict | None], count: Any):
        self.read = read
        self.count = count

    def __call__(self, results: dict) -> dict | None:
        try:
            return self.read(results)
        except Exception as error:  # decoders complain in every way there is
            with self.count.get_lock():
                self.count.value += 1
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            print_log(
                f'{self._file(results)} cannot be read and is left out: {reason}',
                logger='current',
                level=logging.WARNING,
            )
            return None

    def _file(self, results: dict) -> str | None:
        """The file that the step reads: a mask, or else the image."""
        reads_masks = 'Annotation' in type(self.read).__name__
        return (reads_masks and results.get('seg_map_path')) or results.get('img_path')


def _with_pipelines(data_set: Any) -> Iterator[Any]:
    """The data sets with pipelines inside of what repeats or joins them."""
    parts = getattr(data_set, 'datasets', None) or [getattr(data_set, 'dataset', None)]
    if parts != [None]:
        for part in parts:
            yield from _with_pipelines(part)
    elif hasattr(data_set, 'pipeline'):
        yield data_set
