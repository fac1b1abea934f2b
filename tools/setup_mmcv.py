"""Build mmcv's wheel once, show how far it is, and keep it. Only the standard library.

The installers' own caches know a wheel by name and Python alone, and one that was built against
another torch does not load. So ours is keyed by torch and by the GPUs as well.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TextIO

from setup_checks import SetupError, say

CPP_FILES = 77
CUDA_FILES = 58
# Measured with g++ 12 and nvcc 13.0 on one core; a CUDA file costs this for each architecture.
CPP_SECONDS = 15
CUDA_SECONDS = 25
GIGABYTES_PER_COMPILER = 2

# What a reader of a failed build wants to see, out of thousands of lines.
CAUSES = re.compile(
    r':\d+(:\d+)?: (fatal )?error|#error|nvcc fatal|Killed|No space left|^ERROR|^\w+Error: '
)


def cache_folder() -> Path:
    """Find the folder for the wheels that we built."""
    base = os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'
    return Path(base, 'ptnt_mm', 'wheels')


def cache_key(version: str, torch_version: str, target: str) -> str:
    """Name everything that decides whether a built wheel fits.

    Args:
        version: of mmcv.
        torch_version: with its local part, such as '2.11.0+cu130'.
        target: what the operators are compiled for, 'cpu' or 'cuda13.0-9.0'.
    """
    python = f'cp{sys.version_info[0]}{sys.version_info[1]}'
    machine = ''.join((platform.machine(), '-', *platform.libc_ver()))
    return f'mmcv-{version}-{python}-torch-{torch_version}-{target}-{machine}'


def cached_wheel(key: str) -> Path | None:
    """Find the kept wheel of this key, if any."""
    return next(iter(sorted((cache_folder() / key).glob('*.whl'))), None)


def keep_wheel(wheel: Path, key: str) -> Path:
    """Copy a wheel to the cache; nobody sees a part of it there."""
    target = cache_folder() / key / wheel.name
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f'{target.name}.{os.getpid()}')
    try:
        shutil.copyfile(wheel, temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    return target


def build_wheel(
    python: Path, version: str, key: str, environment: dict[str, str], folder: Path
) -> Path:
    """Compile mmcv from its source distribution and keep the wheel.

    Args:
        python: the interpreter of `.venv`, with torch, setuptools and ninja installed.
        version: of mmcv.
        key: from `cache_key`.
        environment: variables which choose between CPU and CUDA.
        folder: for the sources and the objects. It outlives a failure, so that the next try goes on
            where this one stopped.

    Raises:
        SetupError: with the lines of the log that matter.
    """
    log = folder.with_name(f'{folder.name}.log')
    environment = {**os.environ, **environment, 'MMCV_WITH_OPS': '1', 'MAX_JOBS': str(jobs())}
    # ninja must be the one of .venv, and must not take orders from the make that runs us.
    environment['PATH'] = os.pathsep.join((str(python.parent), environment['PATH']))
    pip = [str(python), '-m', 'pip']
    options = ['--no-deps', '--no-build-isolation', '--no-cache-dir']
    sources = folder / f'mmcv-{version}'
    with open(log, 'w', encoding='utf-8') as text:
        if not sources.is_dir():
            shutil.rmtree(folder, ignore_errors=True)
            what = ['--no-binary', 'mmcv', f'mmcv=={version}']
            fetch = [*pip, 'download', *options, '-d', folder, *what]
            if run_logged(fetch, environment, text):
                raise build_error('mmcv could not be downloaded', log)
            unpacked = folder / 'unpacked'
            shutil.unpack_archive(next(folder.glob('mmcv-*.tar.gz')), unpacked)
            os.replace(unpacked / sources.name, sources)
        build = [*pip, 'wheel', '-v', *options, '-w', folder / 'wheel', sources]
        if run_logged(build, environment, text, Progress(sys.stdout)):
            raise build_error('mmcv could not be compiled', log)
    wheel = keep_wheel(next((folder / 'wheel').glob('*.whl')), key)
    shutil.rmtree(folder)
    return wheel


def run_logged(
    command: list, environment: dict[str, str], log: TextIO, progress: 'Progress | None' = None
) -> int:
    """Run a command into the log and return its exit status; progress sees each line."""
    command = [str(part) for part in command]
    print('$', *command, file=log, flush=True)
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors='replace',
    ) as process:
        for line in process.stdout:
            log.write(line)
            if progress:
                progress.feed(line)
    log.flush()
    if progress:
        progress.close()
    return process.returncode


def build_error(what: str, log: Path) -> SetupError:
    """Make an error with the causes that the log names, or its last lines where it names none."""
    lines = [line.strip() for line in log.read_text(encoding='utf-8').splitlines() if line.strip()]
    causes = [line for line in lines if CAUSES.search(line)][:6] or lines[-10:]
    shown = '\n'.join(f'  {line[:240]}' for line in causes)
    hint = ' (out of memory: try MAX_JOBS=1 make setup)' if 'Killed' in shown else ''
    return SetupError(f'{what}{hint}:\n{shown}\nThe whole log: {log}\nThen: make setup')


class Progress:
    """Turn ninja's `[12/77]` into one line: in place on a terminal, else now and then.

    Args:
        stream: where to show it.
        clock: seconds that only grow.
    """

    COUNTER = re.compile(r'^\s*\[(\d+)/(\d+)\]')
    SECONDS_BETWEEN_LINES = 30

    def __init__(self, stream: TextIO, clock=time.monotonic) -> None:
        self.stream = stream
        self.clock = clock
        self.in_place = stream.isatty()
        self.start = self.shown = clock()

    def feed(self, line: str) -> None:
        """Show the progress where this line of the build's output tells any."""
        match = self.COUNTER.match(line)
        if not match:
            return
        now = self.clock()
        done, total = map(int, match.groups())
        if self.in_place or now - self.shown >= self.SECONDS_BETWEEN_LINES or done == total:
            self.shown = now
            self.show(self.describe(done, total, now - self.start))

    @staticmethod
    def describe(done: int, total: int, seconds: float) -> str:
        """Say it, as in 'mmcv: 12 of 77 files, 1:30 min, about 8 min left'."""
        text = f'mmcv: {done} of {total} files, {int(seconds) // 60}:{int(seconds) % 60:02} min'
        if done == total:
            return f'{text}, linking'
        if done < total / 10:  # too few to tell the speed from
            return text
        left = seconds / done * (total - done)
        return f'{text}, about {max(1, round(left / 60))} min left'

    def show(self, text: str) -> None:
        """Write the line, over the last one on a terminal."""
        self.stream.write(f'\r\x1b[Ksetup: {text}' if self.in_place else f'setup: {text}\n')
        self.stream.flush()

    def close(self) -> None:
        """End the line."""
        if self.in_place:
            self.stream.write('\n')


def announce(version: str, archs: tuple[str, ...]) -> None:
    """Say what is about to be compiled and how long that takes."""
    target = f'GPUs of compute capability {", ".join(archs)}' if archs else 'the CPU only'
    say(
        f'compiling mmcv {version} for {target}: about {minutes(archs)} minutes on this machine '
        f'({jobs()} at once). This happens once: the wheel is kept in {cache_folder()}'
    )


def minutes(archs: tuple[str, ...]) -> int:
    """Estimate how long compiling takes."""
    seconds = CPP_FILES * CPP_SECONDS + CUDA_FILES * CUDA_SECONDS * len(archs)
    return max(1, round(seconds / jobs() / 60))


def jobs() -> int:
    """Tell how many compilers run at once: one a core, if memory allows, or as MAX_JOBS says."""
    wanted = os.environ.get('MAX_JOBS', '')
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise SetupError(f'MAX_JOBS is {wanted!r}: it is a number of compilers, 1 or more')
        return int(wanted)
    return max(1, min(usable_cores(), int(free_gigabytes() / GIGABYTES_PER_COMPILER)))


def usable_cores(quota_file: Path = Path('/sys/fs/cgroup/cpu.max')) -> int:
    """Count the cores that this process may use; a container's quota counts."""
    cores = len(os.sched_getaffinity(0))
    with_quota = re.match(r'(\d+) (\d+)', _read(quota_file))
    if with_quota:
        cores = min(cores, max(1, int(with_quota.group(1)) // int(with_quota.group(2))))
    return cores


def free_gigabytes(
    meminfo: Path = Path('/proc/meminfo'), limit_file: Path = Path('/sys/fs/cgroup/memory.max')
) -> float:
    """Measure the memory that can be had; a container's limit counts."""
    available = re.search(r'^MemAvailable:\s+(\d+) kB', _read(meminfo), re.MULTILINE)
    gigabytes = int(available.group(1)) / 1e6 if available else float('inf')
    limit = _read(limit_file).strip()
    return min(gigabytes, int(limit) / 1e9) if limit.isdecimal() else gigabytes


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding='utf-8')
    except OSError:
        return ''
