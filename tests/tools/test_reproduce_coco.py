"""The recipe for COCO: its download, its steps in their order, and its SkyPilot task."""

import hashlib
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from .workplace import ROOT

NAMES = ('annotations', 'val2017', 'train2017')
PIXELS = os.urandom(5000)  # does not get smaller

# Logs its arguments instead of running them; `flags` has an output.
PYTHON = """#!/bin/sh
echo "python $*" >> calls
case "$*" in
    *reproduce.py\\ flags*) printf '%s\\n' --pretrained pretrained/a.pth --resume ;;
    *"$FAILS"*) exit 1 ;;
esac
"""


def write_program(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A folder with an archive for each part of COCO, and their list."""
    folder = tmp_path / 'mirror'
    folder.mkdir()
    lines = []
    for name in NAMES:
        archive = folder / f'{name}.zip'
        with zipfile.ZipFile(archive, 'w') as content:
            content.writestr(f'{name}/file', PIXELS)
        md5 = hashlib.md5(archive.read_bytes()).hexdigest()
        lines.append(f'{name} {archive.stat().st_size} {md5} file://{archive}\n')
    (folder / 'list').write_text(''.join(lines))
    return folder


def download(mirror: Path, **more: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, 'COCO_LIST': str(mirror / 'list'), **more}
    return subprocess.run(
        [ROOT / 'tools' / 'download_coco.sh', 'coco'], cwd=mirror.parent, env=environment,
        capture_output=True, text=True,
    )  # fmt: skip


def test_a_download_is_continued_unpacked_and_not_repeated(mirror: Path):
    coco = mirror.parent / 'coco'
    coco.mkdir()
    half = (mirror / 'val2017.zip').read_bytes()[:2000]
    (coco / 'val2017.zip').write_bytes(half)
    (coco / '.partial' / 'train2017').mkdir(parents=True)  # killed while unpacking
    done = download(mirror)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in coco.iterdir()) == sorted(NAMES)
    assert all((coco / name / 'file').read_bytes() == PIXELS for name in NAMES)
    shutil.rmtree(coco / 'val2017')
    (coco / 'val2017').symlink_to(coco / 'train2017')
    (mirror / 'val2017.zip').unlink()
    assert download(mirror).returncode == 0


def test_an_archive_with_other_bytes_is_deleted(mirror: Path):
    archive = mirror / 'val2017.zip'
    archive.write_bytes(bytes(archive.stat().st_size))
    done = download(mirror)
    assert done.returncode == 1 and 'coco/val2017.zip had the MD5' in done.stderr
    assert [path.name for path in (mirror.parent / 'coco').iterdir()] == ['annotations']


def test_a_download_that_stops_is_kept(mirror: Path):
    (mirror / 'train2017.zip').rename(mirror / 'away')
    done = download(mirror)
    assert done.returncode == 1 and 'run this command again' in done.stderr


def test_a_disk_without_room_is_an_error_before_the_download(mirror: Path, tmp_path: Path):
    write_program(tmp_path / 'df', '#!/bin/sh\nprintf "Avail\\n999999999\\n"\n')
    (mirror / 'list').write_text((ROOT / 'tools/reproduction/coco_2017.txt').read_text())
    done = download(mirror, PATH=f'{tmp_path}:{os.environ["PATH"]}')
    assert done.returncode == 1 and 'has 0 GB free, and COCO needs 41 GB' in done.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with COCO and its own environment."""
    shutil.copytree(ROOT / 'tools', tmp_path / 'tools')
    for name in NAMES:
        (tmp_path / 'data' / 'coco' / name).mkdir(parents=True)
    work_dir = tmp_path / 'work_dirs' / 'config'
    work_dir.mkdir(parents=True)
    (work_dir / 'last_checkpoint').write_text('epoch_12.pth')
    write_program(tmp_path / 'python', PYTHON)
    write_program(tmp_path / 'srun', '#!/bin/sh\necho "srun $*" >> calls\n')
    return tmp_path


def reproduce(checkout: Path, *words: str, **more: str) -> tuple[int, list[str]]:
    """Run the script; its exit status, and the commands that it ran."""
    path = f'{checkout}:{os.environ["PATH"]}'
    variables = dict(PATH=path, PYTHON=str(checkout / 'python'), GPUS='8', FAILS='nothing')
    done = subprocess.run(
        [checkout / 'tools' / 'reproduce_coco.sh', 'config', *words],
        env={**os.environ, **variables, **more},
    )
    calls = checkout / 'calls'
    lines = calls.read_text().splitlines()
    calls.unlink()
    return done.returncode, lines


def test_the_steps(checkout: Path):
    status, (flags, check, train, test, collect) = reproduce(checkout, '--seed', '1')
    assert status == 0
    assert flags == 'python tools/reproduce.py flags config --gpus 8 --weights pretrained'
    assert check == 'python -m ptnt_mm check config --gpus 8 --pretrained pretrained/a.pth'
    assert '--nnodes 1 --node_rank 0 --nproc_per_node 8' in train
    rest = '--work-dir work_dirs/config --pretrained pretrained/a.pth --resume --seed 1'
    assert train.endswith(f'tools/train.py config --launcher pytorch {rest}')
    rest = 'config --launcher pytorch epoch_12.pth --work-dir work_dirs/config/test'
    assert '--nnodes 1 ' in test and test.endswith(f'tools/test.py {rest}')
    assert collect == 'python tools/reproduce.py collect --work-dirs work_dirs'
    status, again = reproduce(checkout, '--seed', '1')
    assert (status, again) == (0, [flags, train, test, collect])


def test_the_second_machine_trains_and_does_not_collect(checkout: Path):
    machine = dict(NNODES='2', NODE_RANK='1', MASTER_ADDR='first', WORK_DIRS='/shared')
    _, (flags, check, train) = reproduce(checkout, **machine)
    assert '--gpus 16' in flags and '--gpus 16' in check
    assert '--nnodes 2 --node_rank 1 --nproc_per_node 8 --master_addr first' in train
    assert '--work-dir /shared/config' in train


def test_slurm_starts_the_processes(checkout: Path):
    _, (*_, train, test, collect) = reproduce(checkout, PARTITION='gpu', GPUS='16')
    assert test.startswith('srun --partition gpu --job-name config --gres gpu:1 ')
    assert test.endswith('-m ptnt_mm test config epoch_12.pth --work-dir work_dirs/config/test')
    assert train.startswith('srun --partition gpu --job-name config --ntasks 16 ')
    assert train.endswith('--launcher slurm --pretrained pretrained/a.pth --resume')
    assert ' collect ' in collect


def test_a_check_that_fails_is_repeated(checkout: Path):
    for _ in range(2):
        status, (_, check) = reproduce(checkout, FAILS='-m ptnt_mm check')
        assert status == 1 and 'ptnt_mm check' in check


def test_training_that_fails_collects_nothing(checkout: Path):
    status, (_, _, train) = reproduce(checkout, FAILS='torch.distributed')
    assert status == 1 and 'tools/train.py' in train


def test_the_skypilot_task_passes_its_machines_to_the_script(tmp_path: Path):
    """SkyPilot's own parser accepts the file; here, its commands are run."""
    task = yaml.safe_load((ROOT / 'tools' / 'reproduce_coco.yaml').read_text())
    (tmp_path / 'tools').mkdir()
    echo = 'echo $1 $NNODES $NODE_RANK $MASTER_ADDR $GPUS $WORK_DIRS'
    write_program(tmp_path / 'tools' / 'reproduce_coco.sh', f'#!/bin/sh\n{echo}\n')
    machines = dict(NUM_NODES='2', NODE_RANK='1', NUM_GPUS_PER_NODE='8', NODE_IPS='10.0.0.1\nother')
    variables = {f'SKYPILOT_{name}': value for name, value in machines.items()}
    done = subprocess.run(
        ['bash', '-c', task['run']], cwd=tmp_path, env={**os.environ, **task['envs'], **variables,
        'BUCKET': 'mine'}, capture_output=True, text=True,
    )  # fmt: skip
    (mount,) = task['file_mounts']
    assert done.stdout.split() == [task['envs']['CONFIG'], '2', '1', '10.0.0.1', '8', mount]
