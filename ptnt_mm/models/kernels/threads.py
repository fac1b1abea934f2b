"""Parts of a computation, each on a thread whose operators use no other thread (ours).

Torch lets all threads work on each operator, and they wait for each other after it. That takes as
long as an operator whose data stays in the cache.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

_Result = TypeVar('_Result')


def in_threads(function: Callable[..., _Result], parts: Iterable[tuple]) -> list[_Result]:
    """Call a function with each part, on a thread each, without gradients.

    Args:
        function: May write to disjoint parts of a tensor.
        parts: Its arguments. A single part stays on the caller's thread, with all of torch's.

    Returns:
        What it returns, in the order of the parts.
    """
    parts, is_inference = [*parts], torch.is_inference_mode_enabled()

    def call(part: tuple) -> _Result:
        # Both modes belong to a thread.
        with torch.inference_mode(is_inference), torch.no_grad():
            return function(*part)

    return list((_pool().map if len(parts) > 1 else map)(call, parts))


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that are started when they are needed, and then wait for work."""
    # Torch's number of threads belongs to the thread that sets it.
    return ThreadPoolExecutor(os.cpu_count(), 'ptnt_mm', torch.set_num_threads, (1,))


# A forked process has none of the threads.
if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_pool.cache_clear)
