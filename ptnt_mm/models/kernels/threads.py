"""Parts of a computation, each on a thread whose operators use no other thread (ours).

Torch divides each operator among all threads, which wait for each other at its end, and then read
numbers that another core has just written. Both take a part of the time of operators whose data
stay in the cache (measured, see ``docs/research/performance.md``).
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier, main_thread
from typing import TypeVar

import torch

_Result = TypeVar('_Result')


def in_threads(function: Callable[..., _Result], parts: Iterable[tuple]) -> list[_Result]:
    """Call a function with each part, on as many threads as torch has, without gradients.

    Args:
        function: May write to disjoint parts of a tensor.
        parts: The arguments of each call. A single part stays on the caller's thread, and its
            operators use all of torch's.

    Returns:
        What it returns, in the order of the parts.

    Raises:
        Exception: what the function raises; other parts may still be running then.
    """
    parts, is_inference = [*parts], torch.is_inference_mode_enabled()
    # Python starts no thread any more once the main one has ended.
    if len(parts) == 1 or not main_thread().is_alive():
        with torch.no_grad():
            return [function(*part) for part in parts]

    def call(part: tuple) -> _Result:
        # Both modes belong to a thread.
        with torch.inference_mode(is_inference), torch.no_grad():
            return function(*part)

    return list(_pool(torch.get_num_threads()).map(call, parts))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work."""
    ready = Barrier(threads + 1)

    def start() -> None:
        # At its first use, torch gives a thread the number that was set last in any thread.
        torch.get_num_threads()
        torch.set_num_threads(1)
        ready.wait()

    pool = ThreadPoolExecutor(threads, 'ptnt_mm', start)
    for _ in range(threads):
        pool.submit(int)
    ready.wait()
    # For this thread it is the same number as before, and for new ones the last.
    torch.set_num_threads(threads)
    return pool


# A forked process has none of the threads.
if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_pool.cache_clear)
