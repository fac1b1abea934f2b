"""Parts of a computation on threads of their own."""

import os
import signal
import subprocess
import sys
from threading import Barrier, Thread, get_ident

import pytest
import torch

from ptnt_mm.models.kernels.threads import in_threads


@pytest.fixture(autouse=True)
def _two_threads() -> None:
    torch.set_num_threads(2)


def facts(number: int) -> tuple[int, int, int, bool]:
    return number, torch.get_num_threads(), get_ident(), torch.is_grad_enabled()


def test_each_uses_one_thread_and_torch_keeps_its_own():
    numbers, threads, _, records = zip(*in_threads(facts, [(i,) for i in range(4)]), strict=True)
    assert numbers == (0, 1, 2, 3) and set(threads) == {1} and not any(records)
    assert torch.get_num_threads() == 2 and torch.is_grad_enabled()


def test_a_single_part_needs_no_other_thread():
    assert in_threads(facts, [(7,)]) == [(7, 2, get_ident(), False)]


def test_parts_run_at_the_same_time():
    """Each waits for the others."""
    barrier = Barrier(2, timeout=20)
    assert len({*in_threads(lambda part: barrier.wait() >= 0 and get_ident(), [(0,), (1,)])}) == 2


def test_a_new_thread_has_all_of_torchs():
    """It takes the number that was set last in any thread."""
    in_threads(facts, [(0,), (1,)])
    found = []
    thread = Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert found == [2]


def test_a_thread_predicts_after_the_program_has_ended():
    """Python starts no thread any more then, and refuses work for its pools."""
    script = """
import threading, time
from ptnt_mm.models.kernels.threads import in_threads
def late():
    threading.main_thread().join()
    time.sleep(0.2)
    print(in_threads(lambda part: part + 1, [(0,), (1,)]))
threading.Thread(target=late).start()
"""
    done = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True)
    assert done.stdout == '[1, 2]\n', done.stderr


def test_errors_are_raised():
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda number: 1 / number, [(1,), (0,)])


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='the system does not fork processes')
@pytest.mark.filterwarnings('ignore:This process .* is multi-threaded:DeprecationWarning')
def test_a_forked_process_has_threads_of_its_own():
    """It would wait for ever for those of its parent."""
    in_threads(facts, [(0,), (1,)])
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit(len(in_threads(facts, [(0,), (1,)])))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
