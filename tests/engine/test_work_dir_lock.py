"""Only one run at a time may use a work dir."""

import os
import socket
import time
from pathlib import Path

import pytest
from forked import Forked

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.engine.work_dir import lock_work_dir

pytestmark = pytest.mark.slow

HOLD = """
import sys, time
from pathlib import Path
from ptnt_mm.workbench.engine.work_dir import lock_work_dir
with lock_work_dir(Path(sys.argv[1])):
    print('held', flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path):
    script, output = tmp_path / 'hold.py', tmp_path / 'output.txt'
    script.write_text(HOLD)
    output.touch()
    process = Forked([script, tmp_path], tmp_path, output)
    while output.read_text() != 'held\n':
        assert process.is_alive(), output.read_text()
        time.sleep(0.05)
    yield process
    process.kill()
    process.wait()


def test_the_second_run_names_the_first(tmp_path: Path, holder):
    with (
        pytest.raises(UserError, match=f'process {holder.pid} on {socket.gethostname()}.*work_dir'),
        lock_work_dir(tmp_path),
    ):
        pass


def test_a_killed_run_leaves_no_lock(tmp_path: Path, holder):
    holder.kill()
    holder.wait()
    with lock_work_dir(tmp_path):
        assert (tmp_path / '.lock').read_text().startswith(f'process {os.getpid()} on ')


def test_lock_is_released_at_the_end(tmp_path: Path):
    for _ in range(2):
        with lock_work_dir(tmp_path):
            pass
