"""Ctrl-C and closed pipes end a command without a traceback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from repository import ROOT, environment

CONFIG = 'retinanet_ptnt_s_1x'


def start(*command: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip


def interrupt(process: subprocess.Popen) -> int:
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert 'Traceback' not in said
    return process.returncode


@pytest.mark.parametrize('words', [['tools/train.py', CONFIG], ['tools/ptnt', 'train', CONFIG]])
def test_ctrl_c_at_the_start(words: list[str]):
    process = start('-X', 'importtime', *words)
    # Written when NumPy is imported, before torch.
    while not process.stderr.readline().endswith(' numpy\n'):
        assert process.poll() is None
    assert interrupt(process) == 130


def test_ctrl_c_while_the_doctor_looks():
    process = start('tools/ptnt', 'doctor')
    # The process itself imports little, and waits for one that imports everything.
    while not Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text():
        assert process.poll() is None
        time.sleep(0.1)
    assert interrupt(process) == 130


def test_a_list_that_nobody_reads():
    command = f'{sys.executable} -m ptnt_mm list | true'
    done = subprocess.run(
        ['bash', '-c', command], cwd=ROOT, env=environment(), capture_output=True, text=True
    )
    assert done.stderr == ''
