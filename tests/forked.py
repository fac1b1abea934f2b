"""Commands in separate processes that start with PyTorch imported.

A command that trains for a moment spends nine tenths of its startup importing what mmdet and
mmseg depend on. One server per test process imports that once, and every command is forked from it.
No module of ptnt_mm, mmdet or mmseg is imported beforehand: what a tool does not import or
register itself is missing here, too.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
from pathlib import Path

import torch
from quick_mmengine import spare_imports
from repository import ROOT

_SERVER = multiprocessing.get_context('forkserver')
# What mmdet, mmseg and mmpretrain import of others.
_PRELOADED = (
    *('mmengine.runner', 'mmcv.ops', 'torchvision', 'timm', 'matplotlib.pyplot', 'skimage'),
    *('sklearn.cluster', 'sklearn.metrics', 'sklearn.mixture', 'shapely.geometry'),
    *('modelindex.load_model_index', 'terminaltables', 'prettytable', 'distutils.errors'),
)
_SERVER.set_forkserver_preload(list(_PRELOADED))


def start_server() -> None:
    """Start the server now, before measurements."""
    process = _SERVER.Process(target=int)
    process.start()
    process.join()


class Forked:
    """A Python script that runs, with the part of ``subprocess.Popen`` that is needed.

    Args:
        words: The script and its arguments.
        folder: Where it runs.
        output: The file that its output is appended to.
        variables: Added to its environment.
    """

    def __init__(self, words: list[object], folder: Path, output: Path, **variables: str):
        self.args = list(map(str, words))
        self._process = _SERVER.Process(target=_run, args=(self.args, folder, output, variables))
        self._process.start()
        self.pid = self._process.pid

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, or the signal that killed it, as a negative number."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self._process.exitcode

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.is_alive()

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()


def _run(words: list[str], folder: Path, output: Path, variables: dict[str, str]) -> None:
    """Run ``python SCRIPT ARGUMENT ...`` in this process, with all output in a file."""
    with output.open('a') as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(folder)
    os.environ.update(variables, PYTHONPATH=str(ROOT))
    # The variables that say so were read before the fork.
    torch.set_num_threads(1)
    spare_imports()
    sys.argv = words
    sys.path[:0] = [str(Path(words[0]).parent), str(ROOT)]
    runpy.run_path(words[0], run_name='__main__')
