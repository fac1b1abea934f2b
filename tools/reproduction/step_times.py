"""Time a training step of a whole model on the device at hand."""

import datetime
import json
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.optim import build_optim_wrapper
from mmengine.registry import DefaultScope

from ptnt_mm.engine.build import build_model
from ptnt_mm.utils.atomic_files import write_whole
from ptnt_mm.utils.errors import UserError
from ptnt_mm.zoo import get_config
from reproduction.entries import Entry
from reproduction.random_batches import boxes_batch, labels_batch, maps_batch

WARM_UP = 2
"""Untimed steps at the start, in which memory is allocated and kernels are chosen."""


@dataclass(frozen=True)
class StepTime:
    """A measured training step: the median seconds for a batch of images, 'HxW' in pixels each."""

    seconds: float
    images: int
    size: str
    device: str
    torch: str
    date: str


def measure_step(entry: Entry, device: str, size: tuple[int, int] | None, steps: int) -> StepTime:
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
    size = size or entry.train_size
    try:
        seconds = time_steps(config, device, size, WARM_UP + steps)[WARM_UP:]
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise UserError(f'{entry.name} does not fit into the memory of {device}') from error
    except (AssertionError, RuntimeError) as error:
        raise UserError(f'{entry.name} cannot be trained on {device}: {error}') from error
    return StepTime(
        seconds=round(statistics.median(seconds), 4),
        images=config.train_dataloader.batch_size,
        size=f'{size[0]}x{size[1]}',
        device=device if device == 'cpu' else torch.cuda.get_device_name(device),
        torch=torch.__version__,
        date=datetime.date.today().isoformat(),
    )


def time_steps(config: Config, device: str, size: tuple[int, int], steps: int) -> list[float]:
    """Train a config's model on random images; return the seconds of each step."""
    if 'size' in config.model.data_preprocessor:  # a segmenter's, which pads images to it
        config.model.data_preprocessor.size = size
    torch.manual_seed(0)
    # On one device there is nothing to synchronise.
    model = revert_sync_batchnorm(build_model(config)).to(device).train()
    with DefaultScope.overwrite_default_scope(config.default_scope):
        optimizer = build_optim_wrapper(model, config.optim_wrapper)
    makers = dict(mmdet=boxes_batch, mmseg=maps_batch, mmpretrain=labels_batch)
    make_batch = makers[config.default_scope]
    batch = make_batch(model, config.train_dataloader.batch_size, size, device)
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        # A copy, because the preprocessor changes the dictionary (but not its values).
        model.train_step(dict(batch), optimizer)
        if device != 'cpu':
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)
    return seconds


def read_step_times(file: Path) -> dict[str, StepTime]:
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


def add_step_time(file: Path, entry: Entry, found: StepTime) -> None:
    """Add a measurement to the file; replace an earlier one of the same step.

    Raises:
        UserError: if the file holds something else, or cannot be written.
    """
    times = {**read_step_times(file), entry.step: found}
    content = {name: asdict(step) for name, step in sorted(times.items())}
    write_whole(file, json.dumps(content, indent=1) + '\n')
