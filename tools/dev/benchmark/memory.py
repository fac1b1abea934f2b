"""Measure the peak memory of a contender."""

import ctypes
import gc
import multiprocessing
import re
from collections.abc import Callable
from pathlib import Path

import torch

from benchmark.contenders import COMPILED, REDUCED, ways_of
from benchmark.timing import Setting, prepare_run

_SMALL = (64, 64)
"""Image size, in pixels, for warming up. Compiled code, made for one size, warms up at its own."""

_STATUS = Path('/proc/self/status')
_CLEAR_REFS = Path('/proc/self/clear_refs')


def allocated_by(run: Callable[[], None], device: str) -> int:
    """Return the memory in bytes that torch's allocator hands out during one run on a GPU."""
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    run()
    return torch.cuda.max_memory_allocated(device) - before


def resident_memory(name: str, setting: Setting, threads: int) -> int | None:
    """Return the peak memory of one run on a CPU in bytes.

    It is the resident set of a separate process, beyond the loaded and warmed-up model, or None if
    the system does not report it (Linux does).
    """
    if not _CLEAR_REFS.exists():
        return None
    # All processes fork from a server that has done the imports but computed nothing.
    context = multiprocessing.get_context('forkserver')
    context.set_forkserver_preload([__name__, 'mmdet.models'])
    with context.Pool(1) as pool:
        return pool.apply(_resident, (name, setting, threads))


def _resident(name: str, setting: Setting, threads: int) -> int:
    torch.set_num_threads(threads)
    run = prepare_run(name, setting, None if ways_of(name) & {COMPILED, REDUCED} else _SMALL)
    gc.collect()
    # Freed memory that malloc keeps would hide part of the peak.
    ctypes.CDLL(None).malloc_trim(0)
    before = _from_status('VmRSS')
    _CLEAR_REFS.write_text('5')  # reset the peak
    run()
    return _from_status('VmHWM') - before


def _from_status(key: str) -> int:
    return int(re.search(rf'{key}:\s+(\d+) kB', _STATUS.read_text()).group(1)) * 1024
