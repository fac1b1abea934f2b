"""Peak memory of a contender above its weights."""

import ctypes
import gc
import multiprocessing
import re
from pathlib import Path

import torch

from benchmark.contenders import COMPILED
from benchmark.timing import Setting, prepare

_SMALL = (64, 64)
"""Pixels that warm up all but compiled code, which belongs to one size."""

_STATUS = Path('/proc/self/status')
_CLEAR_REFS = Path('/proc/self/clear_refs')


def peak(name: str, setting: Setting, threads: int) -> int | None:
    """Bytes above the loaded, warmed-up model at the worst moment of one run.

    On a GPU what torch's allocator gave out; on a CPU the resident set of a process of its own,
    so that nothing else is in it, or None where the system does not tell (it does on Linux).
    """
    if setting.device != 'cpu':
        return _allocated(name, setting)
    if not _CLEAR_REFS.exists():
        return None
    # Each process starts from one that has imported what all need, and computed nothing.
    context = multiprocessing.get_context('forkserver')
    context.set_forkserver_preload([__name__, 'mmdet.models'])
    with context.Pool(1) as pool:
        return pool.apply(_resident, (name, setting, threads))


def _allocated(name: str, setting: Setting) -> int:
    run = prepare(name, setting)
    torch.cuda.reset_peak_memory_stats(setting.device)
    before = torch.cuda.memory_allocated(setting.device)
    run()
    return torch.cuda.max_memory_allocated(setting.device) - before


def _resident(name: str, setting: Setting, threads: int) -> int:
    torch.set_num_threads(threads)
    run = prepare(name, setting, None if name.endswith(COMPILED) else _SMALL)
    gc.collect()
    _give_back_free_memory()
    before = _from_status('VmRSS')
    _CLEAR_REFS.write_text('5')  # the peak starts again from here
    run()
    return _from_status('VmHWM') - before


def _give_back_free_memory() -> None:
    """What malloc keeps after the warm-up would count as the model's."""
    trim = getattr(ctypes.CDLL(None), 'malloc_trim', None)
    if trim is not None:
        trim(0)


def _from_status(key: str) -> int:
    return int(re.search(rf'{key}:\s+(\d+) kB', _STATUS.read_text()).group(1)) * 1024
