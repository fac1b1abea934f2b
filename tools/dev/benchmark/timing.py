"""Time contenders interleaved, so that background load affects all of them equally."""

import argparse
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmark.contenders import (
    CHANNELS_LAST,
    COMPILED,
    OPTIMIZERS,
    REDUCED,
    build_contender,
    ways_of,
)
from benchmark.detectors import DetectorLosses
from ptnt_mm.utils.errors import UserError

FORWARD, TRAINING = 'forward', 'training step'
MODES = (FORWARD, TRAINING)


@dataclass(frozen=True)
class Setting:
    """The work that is timed."""

    mode: str
    """One of :data:`MODES`; a training step is a forward and a backward pass, and an optimizer's
    step if the contender has one."""

    size: tuple[int, int]
    """Height and width of the images, in pixels."""

    batch: int = 1
    dtype: str = 'float32'
    """Autocast to this type; the weights stay float32."""

    device: str = 'cpu'

    def __str__(self) -> str:
        height, width = self.size
        return f'{self.mode}, {height}x{width}, batch {self.batch}, {self.dtype}, {self.device}'


def size(text: str) -> tuple[int, int]:
    """Height and width in pixels, from text such as '800x1344'; argparse prints errors."""
    found = re.fullmatch(r'([1-9]\d*)x([1-9]\d*)', text.strip().lower())
    if found is None:
        raise argparse.ArgumentTypeError(
            f'{text!r} is no size: expected height x width in pixels, such as 800x1344'
        )
    return int(found[1]), int(found[2])


def prepare_run(
    name: str, setting: Setting, warm_up: tuple[int, int] | None = None
) -> Callable[[], None]:
    """Build a contender, warm it up once, and return the function to time.

    Args:
        name: The contender.
        setting: The work to time.
        warm_up: Height and width of the warm-up image, in pixels. Default: the setting's size.

    Raises:
        UserError: if a package or memory for the contender is missing, or compilation fails.
    """
    ways = ways_of(name)
    torch.manual_seed(0)
    model = build_contender(name).to(setting.device)
    model.train(setting.mode == TRAINING)
    image = torch.randn(setting.batch, 3, *setting.size, device=setting.device)
    if CHANNELS_LAST in ways:
        model.to(memory_format=torch.channels_last)
        image = image.contiguous(memory_format=torch.channels_last)
    parts = model.parts if isinstance(model, DetectorLosses) else [model]
    for part in parts if ways & {COMPILED, REDUCED} else ():
        part.compile(dynamic=False, mode='reduce-overhead' if REDUCED in ways else None)
    optimizer = None
    for way in ways & OPTIMIZERS.keys():
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, **OPTIMIZERS[way])
    lower, dtype = setting.dtype != 'float32', getattr(torch, setting.dtype)
    device = torch.device(setting.device).type

    def start(image: Tensor = image) -> None:
        with torch.autocast(device, dtype=dtype, enabled=lower):
            if setting.mode == FORWARD:
                _forward(model, image)
            else:
                _train(model, image, optimizer)

    try:
        start(*(() if warm_up is None else (image[..., : warm_up[0], : warm_up[1]],)))
        if REDUCED in ways:
            start()  # the second call records the graph
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise UserError(f'{name} does not fit into memory: {setting}') from error
    except RuntimeError as error:
        if not ways & {COMPILED, REDUCED}:
            raise
        raise UserError(f'{name} cannot run: {type(error).__name__}: {error}') from error

    def run() -> None:
        start()
        if setting.device != 'cpu':
            torch.cuda.synchronize(setting.device)

    return run


def interleave(runs: dict[str, Callable[[], None]], rounds: int) -> dict[str, tuple[float, ...]]:
    """Run every contender once per round; return the seconds of each round."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: tuple(found) for name, found in seconds.items()}


@torch.no_grad()
def _forward(model: nn.Module, image: Tensor) -> None:
    model(image)


def _train(model: nn.Module, image: Tensor, optimizer: torch.optim.Optimizer | None) -> None:
    loss = sum(output.float().mean() for output in model(image))
    loss.backward()
    if optimizer is not None:
        optimizer.step()
    model.zero_grad(set_to_none=True)
