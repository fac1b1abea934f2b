"""Run contenders in a setting, and measure time, memory and operations."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import torch

from benchmark.contenders import REDUCED, build_contender, counted_as, ways_of
from benchmark.detectors import CONFIGS
from benchmark.memory import allocated_by, resident_memory
from benchmark.report import Row
from benchmark.timing import Setting, interleave, prepare_run
from ptnt_mm.complexity import measure_complexity
from ptnt_mm.utils.errors import UserError

QUIET_LOAD = 0.5
"""Highest load by other work before we warn. Published attention suffers first (bandwidth)."""


def tell(text: str) -> None:
    """Print a line of progress or a warning."""
    print(text, file=sys.stderr, flush=True)


def check_machine(device: str) -> None:
    """Warn if other work would distort the measurements.

    Raises:
        UserError: if the device cannot be used.
    """
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f'device {device!r} cannot be used here: {error}') from error
    if os.getloadavg()[0] > QUIET_LOAD:
        tell(f'WARNING: the machine is busy (load {os.getloadavg()[0]:.1f}): ratios will be wrong')


def time_contenders(models: list[str], setting: Setting, rounds: int) -> list[Row]:
    """Time contenders in turn; those that cannot run are skipped."""
    runs = {}
    for name in models:
        tell(f'{setting}: {name}')
        try:
            runs[name] = prepare_run(name, setting)
        except UserError as error:
            tell(f'LEFT OUT: {error}')
    found = interleave(runs, rounds)
    return [
        Row(name, setting, found[name], _allocated(name, run, setting))
        for name, run in runs.items()
    ]


def _allocated(name: str, run: Callable[[], None], setting: Setting) -> int | None:
    """Memory on a GPU. A graph has none: it allocates while it is recorded."""
    if setting.device == 'cpu' or REDUCED in ways_of(name):
        return None
    return allocated_by(run, setting.device)


def with_costs(row: Row, threads: int) -> Row:
    """Measure the memory of a contender on a CPU, and count its multiply-adds."""
    if row.setting.device == 'cpu':
        tell(f'memory of {row.name}')
        row = replace(row, peak_bytes=resident_memory(row.name, row.setting, threads))
    name = counted_as(row.name)
    return row if name in CONFIGS else replace(row, multiply_adds=_count(name, row.setting.size))


@cache
def _count(name: str, size: tuple[int, int]) -> int | None:
    """Count the multiply-adds of one image; None if that fails."""
    tell(f'multiply-adds of {name} at {size[0]}x{size[1]}')
    try:
        return measure_complexity(build_contender(name), size).total.multiply_adds
    except (UserError, MemoryError, torch.OutOfMemoryError) as error:
        tell(f'NOT COUNTED: {name}: {error}')
        return None
