"""Going on past images that cannot be read, up to a number."""

import logging
import multiprocessing
from collections.abc import Callable, Iterator
from typing import Any

from mmengine.hooks import Hook
from mmengine.logging import print_log

from ptnt_mm.errors import UserError
from ptnt_mm.registry import HOOKS


@HOOKS.register_module()
class SkipCorruptImagesHook(Hook):
    """Take another image in place of one that cannot be read; stop when there are too many.

    Each is named in the log. MMEngine's data sets do the replacing; mmdet's and mmseg's training
    would end at the first of them. Processes count for themselves. It is for epoch-based training:
    MMEngine's iteration-based loop starts its workers before any hook is called.

    Args:
        limit: How many may be left out in an epoch; 0 stops at the first.
    """

    # After hooks that change the pipeline, and before workers are started.
    priority = 'LOW'

    def __init__(self, limit: int = 10):
        self.limit = limit
        # The workers of data loaders count together.
        self._count = multiprocessing.Value('i', 0)

    def before_train_epoch(self, runner: Any) -> None:
        """Count from 0: the same images come again."""
        self._watch(runner)
        self._count.value = 0

    def _watch(self, runner: Any) -> None:
        """Watch over the first step of every training pipeline, which reads the image."""
        for data_set in _with_pipelines(runner.train_dataloader.dataset):
            steps = data_set.pipeline.transforms
            if steps and not isinstance(steps[0], _Watched):
                steps[0] = _Watched(steps[0], self._count)

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Compare the count with the limit.

        Raises:
            UserError: if there were more.
        """
        if self._count.value > self.limit:
            raise UserError(
                f'{self._count.value} images could not be read in this epoch; the log names them. '
                'Mend them (tools/check_config.py finds all), or allow more with '
                "custom_hooks=[dict(type='SkipCorruptImagesHook', limit=...), ...]"
            )


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
                f'{results.get("img_path")} cannot be read and is left out: {reason}',
                logger='current',
                level=logging.WARNING,
            )
            return None


def _with_pipelines(data_set: Any) -> Iterator[Any]:
    """The data sets with pipelines inside of what repeats or joins them."""
    parts = getattr(data_set, 'datasets', None) or [getattr(data_set, 'dataset', None)]
    if parts != [None]:
        for part in parts:
            yield from _with_pipelines(part)
    elif hasattr(data_set, 'pipeline'):
        yield data_set
