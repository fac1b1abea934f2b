"""Continue past images and masks that cannot be read, up to a limit."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

from mmengine.dataset import Compose
from mmengine.hooks import Hook
from mmengine.logging import print_log

from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.frames import failing_part, one_line, place_in_own_code
from ptnt_mm.utils.numbers import is_integer


@HOOKS.register_module()
class SkipCorruptImagesHook(Hook):
    """Use another image in place of one that cannot be read; stop when there are too many.

    The log names each image and mask that cannot be read. MMEngine's data sets choose the
    replacement; without this hook, mmdet and mmseg stop at the first such file. Each worker of the
    data loader counts the files it reads, each once. In epoch-based training, workers start from 0
    in every epoch. Annotations that do not come from separate files, such as boxes, stop the run.
    So do other steps of a pipeline that fail; the error names the image, also in evaluations.

    Iteration-based training needs :class:`RepeatableIterBasedTrainLoop`: MMEngine's own loop starts
    its workers before any hook is called.

    Args:
        limit: How many files a worker may skip; 0 stops at the first.

    Raises:
        UserError: if the limit is not an integer from 0, and during training if it is exceeded.
    """

    # After hooks that change the pipeline, and before workers are started.
    priority = 'LOW'

    def __init__(self, limit: int = 10):
        if not is_integer(limit) or limit < 0:
            raise UserError(
                f'SkipCorruptImagesHook(limit={limit!r}): expected the number of files that may '
                'be skipped, an integer from 0'
            )
        self._limit = limit
        self._unreadable: set[str] = set()

    def before_train_epoch(self, runner: Any) -> None:
        """Wrap the steps that read files, before workers get copies of them."""
        self.watch(runner.train_dataloader.dataset)
        _name_images(runner.train_dataloader.dataset)

    def before_val_epoch(self, runner: Any) -> None:
        """Let errors name the image."""
        _name_images(runner.val_dataloader.dataset)

    def before_test_epoch(self, runner: Any) -> None:
        """Let errors name the image."""
        _name_images(runner.test_dataloader.dataset)

    def watch(self, data_set: Any) -> None:
        """Wrap the steps of a data set that read files; MMEngine then replaces unreadable ones."""
        for part in with_pipelines(data_set):
            steps = part.pipeline.transforms
            for number, step in enumerate(steps):
                # The first step, under any name, and those that read masks.
                reads = number == 0 or type(step).__name__.startswith('Load')
                if reads and not isinstance(step, _Watched):
                    steps[number] = _Watched(step, self._limit, self._unreadable)


class _NamingImages(Compose):
    """A pipeline whose errors name the image; it takes the place of another one."""

    def __call__(self, data: dict) -> dict | None:
        file = data.get('img_path') or f'image {data.get("sample_idx")}'
        try:
            return super().__call__(data)
        except (UserError, MemoryError):
            raise
        except Exception as error:  # transforms may raise anything
            if isinstance(error, OSError) and error.errno:  # decoders raise some without
                raise
            step = failing_part(error) or ''
            # Other steps rather fail because of their code or settings.
            is_at_fault = step.startswith('Load') or 'Resize' in step
            advice = '. Correct it or remove it from the data' if is_at_fault else ''
            raise UserError(
                f'{file} cannot be prepared for the network: {one_line(error, named=True)}'
                f'{place_in_own_code(error)}{advice}'
            ) from error


def _name_images(data_set: Any) -> None:
    for part in with_pipelines(data_set):
        if type(part.pipeline) is Compose:
            part.pipeline = _NamingImages(part.pipeline.transforms)


class _Watched:
    """A step of a pipeline that returns None if it fails, and raises if it fails too often.

    Args:
        read: The step.
        limit: How many files may be skipped.
        unreadable: Unreadable files of this process, shared by all steps.
    """

    def __init__(self, read: Callable[[dict], dict | None], limit: int, unreadable: set[str]):
        self.read = read
        self.limit = limit
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
                # Other annotations do not come from separate files.
                raise
            reason = one_line(error).removeprefix(f'{file} ').removeprefix('cannot be read: ')
            if file not in self.unreadable:
                self.unreadable.add(file)
                what = f'{file} cannot be read and is skipped: {reason}'
                print_log(what, logger='current', level=logging.WARNING)
            # Here and not after the iteration: if every image fails, no iteration ever ends.
            if len(self.unreadable) > self.limit:
                raise UserError(
                    f'{len(self.unreadable)} images or masks could not be read; the log lists '
                    f'them. The last one is {file}: {reason}. Fix them (ptnt check finds all), or '
                    'allow more with '
                    "custom_hooks=[dict(type='SkipCorruptImagesHook', limit=...), ...]"
                ) from error
            return None


def with_pipelines(data_set: Any) -> Iterator[Any]:
    """Yield the data sets with pipelines inside wrappers that repeat or join them."""
    parts = getattr(data_set, 'datasets', None) or [getattr(data_set, 'dataset', None)]
    if parts != [None]:
        for part in parts:
            yield from with_pipelines(part)
    elif hasattr(data_set, 'pipeline'):
        yield data_set
