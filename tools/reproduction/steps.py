"""Time a training step of a whole detector or segmenter on the device at hand."""

import datetime
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, DefaultScope
from mmengine.structures import PixelData
from torch import nn

from ptnt_mm.engine.hosts import import_host
from ptnt_mm.utils.atomic_files import written_whole
from ptnt_mm.utils.errors import UserError
from ptnt_mm.zoo import get_config
from reproduction.entries import Entry

WARM_UP = 2
"""Untimed steps at the start, in which memory is allocated and kernels are chosen."""

OBJECTS = 7
"""Objects per random image. COCO has 7.3 on average."""


@dataclass(frozen=True)
class StepTime:
    """A measured training step.

    Attributes:
        seconds: Median seconds of a step.
        images: Images in a batch.
        size: Height x width of the images, in pixels.
        device: Name of the device.
        torch: Version of torch.
        date: The date as ``YYYY-MM-DD``.
    """

    seconds: float
    images: int
    size: str
    device: str
    torch: str
    date: str

    @property
    def seconds_per_image(self) -> float:
        """Seconds for one image on one device."""
        return self.seconds / self.images


def measure(entry: Entry, device: str, size: tuple[int, int] | None, steps: int) -> StepTime:
    """Time training steps on random images, without data loading or communication.

    The batch size is the config's.

    Args:
        entry: The entry whose model and optimizer are timed.
        device: 'cpu', 'cuda' or 'cuda:1'.
        size: Height and width of the images, in pixels; None for the benchmark's size.
        steps: Number of steps to time.

    Raises:
        UserError: if the device is missing, has too little memory, or cannot run the config.
    """
    config = get_config(entry.name)
    images = config.train_dataloader.batch_size
    size = entry.benchmark.train_size if size is None else size
    try:
        step = _prepare(config, device, size, images)
        seconds = [_timed(step, device) for _ in range(WARM_UP + steps)][WARM_UP:]
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise UserError(f'{entry.name} does not fit into the memory of {device}') from error
    except (AssertionError, RuntimeError) as error:
        raise UserError(f'{entry.name} cannot be trained on {device}: {error}') from error
    return StepTime(
        seconds=round(statistics.median(seconds), 4),
        images=images,
        size=f'{size[0]}x{size[1]}',
        device=device if device == 'cpu' else torch.cuda.get_device_name(device),
        torch=torch.__version__,
        date=datetime.date.today().isoformat(),
    )


def read(file: Path) -> dict[str, StepTime]:
    """Read the step times measured so far, by :attr:`Entry.step`; empty if there is no file.

    Raises:
        UserError: if the file holds something else.
    """
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding='utf-8'))
        return {name: StepTime(**fields) for name, fields in content.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(f'{file} holds no step times ({error}): move it away') from error


def add(file: Path, entry: Entry, found: StepTime) -> None:
    """Add a measurement to the file; replace an earlier one of the same step.

    Raises:
        UserError: if the file holds something else, or cannot be written.
    """
    times = {**read(file), entry.step: found}
    content = {name: asdict(step) for name, step in sorted(times.items())}
    with written_whole(file) as partial:
        partial.write_text(json.dumps(content, indent=1) + '\n', encoding='utf-8')


def _prepare(config: Config, device: str, size: tuple[int, int], images: int) -> Callable[[], None]:
    """Build a model and return a function that runs one step on random images."""
    scope = config.default_scope
    import_host(f'{scope}.models')
    torch.manual_seed(0)
    with DefaultScope.overwrite_default_scope(scope):
        # On one device there is nothing to synchronise.
        model = revert_sync_batchnorm(MODELS.build(config.model)).to(device).train()
        optimizer = build_optim_wrapper(model, config.optim_wrapper)
    data = _BATCHES[scope](model, images, size, device)

    def step() -> None:
        # A copy, because the preprocessor changes the dictionary (but not its values).
        model.train_step(dict(data), optimizer)

    return step


def _boxes(model: nn.Module, images: int, size: tuple[int, int], device: str) -> dict:
    """Return random images for a detector, with boxes, and with masks if it predicts them."""
    from mmdet.testing import demo_mm_inputs

    return demo_mm_inputs(
        images,
        [[3, *size]] * images,
        num_items=[OBJECTS] * images,
        with_mask=hasattr(model, 'roi_head') and model.roi_head.with_mask,
        device=device,
    )


def _maps(model: nn.Module, images: int, size: tuple[int, int], device: str) -> dict:
    """Return random images for a segmenter, with a class for each pixel."""
    from mmseg.structures import SegDataSample

    def sample() -> SegDataSample:
        labels = PixelData(data=torch.randint(model.num_classes, (1, *size), device=device))
        return SegDataSample(gt_sem_seg=labels, metainfo=dict(img_shape=size))

    return dict(
        inputs=list(torch.randint(256, (images, 3, *size), dtype=torch.uint8, device=device)),
        data_samples=[sample() for _ in range(images)],
    )


# Functions that make a random batch, by the config's default scope.
_BATCHES = {'mmdet': _boxes, 'mmseg': _maps}


def _timed(step: Callable[[], None], device: str) -> float:
    start = time.perf_counter()
    step()
    if device != 'cpu':
        torch.cuda.synchronize(device)
    return time.perf_counter() - start
