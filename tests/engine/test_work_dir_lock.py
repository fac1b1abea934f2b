"""Only one run at a time may use a work dir."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ptnt_mm.engine.work_dir import lock_work_dir
from ptnt_mm.utils.errors import UserError

pytestmark = pytest.mark.slow

HOLD = """
import sys, time
from pathlib import Path
from ptnt_mm.engine.work_dir import lock_work_dir
with lock_work_dir(Path(sys.argv[1])):
    print('held', flush=True)
    if len(sys.argv) > 2:
        import os
        os.fork() or time.sleep(60)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path):
    process = subprocess.Popen(
        [sys.executable, '-c', HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == 'held\n'
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
