"""Two processes on a CPU, started by torchrun or, where that does not matter, by a fork."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from forked import Forked
from soak import SMALL, SMALL_MAPS

from ptnt_mm.weights.reader.read import read_checkpoint

from .workplace import ROOT, Workplace

TESTS = Path(__file__).parents[1]


def environment(workplace: Workplace, port: int) -> dict[str, str]:
    paths = f'{ROOT}{os.pathsep}{TESTS}'
    more = dict(PYTHONPATH=paths, OMP_NUM_THREADS='1', PORT=str(port), PYTHON=sys.executable)
    return workplace.environment(**more)


@pytest.fixture
def small(workplace: Workplace) -> Path:
    file = workplace.folder / 'small_distributed.py'
    file.write_text(SMALL)
    return file


def run_ranks(workplace: Workplace, port: int, *words: object) -> str:
    """Run a script in two processes with the environment that torchrun gives; their output."""
    output = workplace.folder / f'ranks{port}.txt'
    shared = dict(WORLD_SIZE='2', MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
    ranks = [
        Forked(list(words), workplace.folder, output, RANK=rank, LOCAL_RANK=rank, **shared)
        for rank in '01'
    ]
    assert [rank.wait(280) for rank in ranks] == [0, 0], output.read_text()
    return output.read_text()


@pytest.mark.timeout(300)
def test_gradients_are_the_mean_of_those_of_the_images(workplace: Workplace, tmp_path: Path):
    file = tmp_path / 'difference.txt'
    run_ranks(workplace, 29611, TESTS / 'two_processes.py', file)
    assert float(file.read_text()) < 1e-4


def test_all_processes_evaluate_the_network_that_is_saved(workplace: Workplace, tmp_path: Path):
    run_ranks(workplace, 29613, TESTS / 'two_processes_buffers.py', tmp_path)
    found = json.loads((tmp_path / 'found.json').read_text())
    assert found['epochs'] == found['iterations'] == [0.0, 0.0]
    assert found['apart'][0] > 1e-3


def start(workplace: Workplace, config: Path, port: int, *flags: str) -> subprocess.Popen:
    return subprocess.Popen(
        [ROOT / 'tools' / 'dist_train.sh', config, '2', '--work-dir', f'dist{port}', *flags],
        env=environment(workplace, port), cwd=workplace.folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


@pytest.mark.timeout(600)
def test_one_process_is_killed_and_the_other_stops(workplace: Workplace, small: Path):
    process = start(
        workplace, small, 29612, '--seed', '1', '--cfg-options', 'train_cfg.max_epochs=99'
    )
    # Iterating would read ahead.
    for line in iter(process.stdout.readline, ''):
        if line.startswith('epoch '):
            break
    threads = Path(f'/proc/{process.pid}/task').glob('*/children')
    children = [int(child) for thread in threads for child in thread.read_text().split()]
    os.kill(max(children), signal.SIGKILL)
    killed = time.monotonic()
    rest, _ = process.communicate(timeout=120)
    assert time.monotonic() - killed < 60 and process.returncode != 0
    assert 'SIGKILL' in rest or 'another process of this run stopped' in rest


@pytest.mark.timeout(600)
def test_iterations_resume_bit_by_bit(workplace: Workplace):
    """Each process draws its own images and numbers; mmseg's SyncBN works on a CPU."""
    config = workplace.folder / 'small_maps_distributed.py'
    head = "model['decode_head'] = dict(norm_cfg=dict(type='SyncBN', requires_grad=True))"
    config.write_text(f'{SMALL_MAPS}\n{head}\n')
    settings = (
        '--cfg-options', 'train_cfg.max_iters=4', 'train_cfg.val_interval=9',
        'default_hooks.checkpoint.interval=2', 'default_hooks.checkpoint.max_keep_ckpts=9',
    )  # fmt: skip
    weights = []
    train = [ROOT / 'tools' / 'train.py', config, '--launcher', 'pytorch']
    for port, start_from in ((29614, '--seed=1'), (29615, '--resume=dist29614/iter_2.pth')):
        words = [*train, '--work-dir', f'dist{port}', start_from, *settings]
        output = run_ranks(workplace, port, *words)
        assert output.count('on this CPU each process has a separate BN') == 1
        last = workplace.folder / f'dist{port}' / 'iter_4.pth'
        weights.append(read_checkpoint(last)['state_dict'])
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


SAME_START = """
import os, torch
from ptnt_mm.workbench.engine.launcher import require_same_start
from ptnt_mm.utils.errors import UserError
torch.distributed.init_process_group('gloo')
require_same_start(dict(meta=dict(iter=5)))
try:
    require_same_start(dict(meta=dict(iter=5)) if os.environ['RANK'] == '0' else None)
except UserError as error:
    print(error)
"""


def test_a_work_dir_that_the_machines_do_not_share_is_an_error(workplace: Workplace):
    script = workplace.folder / 'same_start.py'
    script.write_text(SAME_START)
    output = run_ranks(workplace, 29616, script)
    assert output.count('found checkpoints of different iterations [5, 0]') == 2


@pytest.mark.parametrize('words', [[], ['c.py'], ['c.py', 'no'], ['c.py', '0']])
def test_the_script_wants_a_config_and_a_number(workplace: Workplace, words: list[str]):
    done = subprocess.run(
        [ROOT / 'tools' / 'dist_train.sh', *words], capture_output=True, text=True
    )
    assert done.returncode == 2 and 'GPUS is a number' in done.stderr
