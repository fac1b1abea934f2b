"""Run a whole benchmark: every contender in every setting."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from benchmark.contenders import build_contender, counted_as
from benchmark.machine import describe_machine
from benchmark.memory import peak_memory
from benchmark.report import Measurement, Report, spread
from benchmark.timing import FORWARD, Setting, interleave, prepare_run, system_load
from ptnt_mm.engine.complexity import measure
from ptnt_mm.utils.errors import UserError

QUIET_LOAD = 0.5
"""Highest load by other work before we warn. Published attention suffers first (bandwidth)."""

STEADY_SPREAD = 1.25
"""Highest ratio of slowest to median round for a run that counts as undisturbed."""

SIDES_MODELS = ('ptnt_s', 'ptnt_s_eager', 'swin_t', 'resnet50')
"""Contenders in the figure over image sizes."""

EAGER_LIMIT = 1024
"""Largest side for the published form: at 2048 its logits alone take 17 GiB."""


@dataclass(frozen=True)
class Plan:
    """Everything to measure."""

    models: list[str]
    modes: list[str]
    sizes: list[tuple[int, int]]
    batches: list[int]
    dtypes: list[str]
    device: str
    threads: int
    rounds: int
    sides: list[int]
    """Side lengths, in pixels, of square images for the figure over image sizes."""

    def settings(self) -> list[Setting]:
        """List every combination of size, batch, type and mode."""
        combinations = itertools.product(self.sizes, self.batches, self.dtypes, self.modes)
        return [
            Setting(mode, size, batch, dtype, self.device)
            for size, batch, dtype, mode in combinations
        ]


def run_benchmark(plan: Plan, tell: Callable[[str], None]) -> tuple[Report, Report]:
    """Measure all settings of a plan, and then the square images.

    Args:
        plan: What to measure.
        tell: Called with lines of progress and warnings.

    Raises:
        UserError: if the device cannot be used.
    """
    _check_device(plan.device)
    torch.set_num_threads(plan.threads)
    warn_if_busy(tell)
    multiply_adds = _count(plan, tell)
    rows = []
    for setting in plan.settings():
        rows += _rows(plan.models, setting, plan, tell, multiply_adds)
    sizes = []
    for side in plan.sides:
        models = [name for name in SIDES_MODELS if name in plan.models]
        if side > EAGER_LIMIT:
            models = [name for name in models if not name.endswith('_eager')]
        setting = Setting(FORWARD, (side, side), plan.batches[0], plan.dtypes[0], plan.device)
        sizes += _rows(models, setting, replace(plan, rounds=min(plan.rounds, 2)), tell)
    if rows and spread(rows) > STEADY_SPREAD:
        tell(
            f'WARNING: rounds differ by {spread(rows):.2f}: other work ran on the machine; '
            'stop it and run again before you quote a figure'
        )
    where = describe_machine(plan.device, plan.threads)
    return Report(tuple(rows), where), Report(tuple(sizes), where)


def warn_if_busy(tell: Callable[[str], None]) -> None:
    """Warn if other work on the machine would distort the measurements."""
    if system_load() > QUIET_LOAD:
        tell(f'WARNING: the machine is busy (load {system_load():.1f}): ratios will be wrong')


def _rows(
    models: list[str],
    setting: Setting,
    plan: Plan,
    tell: Callable[[str], None],
    multiply_adds: dict | None = None,
) -> list[Measurement]:
    """Time the contenders in turn. If ``multiply_adds`` is given, also measure their memory."""
    works = {}
    for name in models:
        tell(f'{setting}: {name}')
        try:
            works[name] = prepare_run(name, setting)
        except UserError as error:
            tell(f'LEFT OUT: {error}')
    times = interleave(works, plan.rounds)
    works.clear()
    rows = []
    for name, found in times.items():
        row = Measurement(name, setting, found, None, None)
        if multiply_adds is not None:
            tell(f'memory of {name}')
            row = replace(
                row,
                peak_bytes=peak_memory(name, setting, plan.threads),
                multiply_adds=multiply_adds.get((counted_as(name), setting.size)),
            )
        rows.append(row)
    return rows


def _count(plan: Plan, tell: Callable[[str], None]) -> dict[tuple[str, tuple[int, int]], int]:
    """Count the multiply-adds of one image, by counted contender and image size."""
    found = {}
    for name in dict.fromkeys(map(counted_as, plan.models)):
        for size in plan.sizes:
            tell(f'multiply-adds of {name} at {size[0]}x{size[1]}')
            try:
                found[name, size] = measure(build_contender(name), size).total.multiply_adds
            except (UserError, MemoryError, torch.OutOfMemoryError) as error:
                tell(f'NOT COUNTED: {name}: {error}')
    return found


def _check_device(device: str) -> None:
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f'device {device!r} cannot be used here: {error}') from error
