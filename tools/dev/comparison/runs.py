"""Train all backbones on the demo set: same detectors and schedule, random weights, 3 seeds."""

import functools
import itertools
import json
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmark.report import machine
from ptnt_mm.utils.atomic_files import written_whole
from ptnt_mm.utils.errors import UserError
from ptnt_mm.zoo import config_root
from reproduction.benchmarks import COCO
from reproduction.collect import last_evaluation
from reproduction.run import train_command

DETECTORS = {'retinanet': 'RetinaNet', 'mask_rcnn': 'Mask R-CNN'}
BACKBONES = {
    'ptnt_ti': 'PyramidTNT-Ti',
    'swin': 'Swin, reduced',
    'pvt_v2_b0': 'PVTv2-B0',
    'resnet18': 'ResNet-18',
}
SEEDS = (0, 1, 2)

_OUTCOME, _CONSOLE = 'outcome.json', 'console.txt'


@dataclass(frozen=True)
class Contender:
    """A detector with a backbone: a config of ``configs/comparison``."""

    detector: str
    backbone: str

    @property
    def name(self) -> str:
        """Name of the config."""
        return f'{self.detector}_{self.backbone}'

    @property
    def config(self) -> Path:
        """Path of the config."""
        return config_root() / 'comparison' / f'{self.name}.py'


CONTENDERS = tuple(itertools.starmap(Contender, itertools.product(DETECTORS, BACKBONES)))


@dataclass(frozen=True)
class Outcome:
    """The result of a finished run.

    Attributes:
        name: Name of the config.
        seed: The random seed.
        box_ap: Box AP on the val split after the last epoch, in [0, 1].
        mask_ap: The same for masks; None for a detector without masks.
        seconds: Wall time of the run, evaluation included.
        machine: Hardware and package versions.
    """

    name: str
    seed: int
    box_ap: float
    mask_ap: float | None
    seconds: float
    machine: dict[str, Any]


def run_missing(
    seeds: list[int], work_dirs: Path, jobs: int, threads: int, tell: Callable[[str], None]
) -> None:
    """Train every run that has no outcome yet; interrupted runs start over.

    Args:
        seeds: Random seeds. All contenders run with the first before any runs with the second.
        work_dirs: The folder that holds a folder for each run.
        jobs: Number of parallel runs.
        threads: Number of threads per run.
        tell: Called with a line for each finished run.

    Raises:
        UserError: at the first run that fails; says where its output is.
    """
    runs = [(contender, seed) for seed in seeds for contender in CONTENDERS]
    missing = [run for run in runs if not _folder(work_dirs, *run).joinpath(_OUTCOME).is_file()]
    tell(f'{len(runs) - len(missing)} of {len(runs)} runs are done')
    pool = ThreadPoolExecutor(jobs)
    try:
        train = functools.partial(_train, work_dirs=work_dirs, threads=threads)
        for outcome in pool.map(train, missing):
            tell(f'{outcome.name}, seed {outcome.seed}: {outcome.seconds:.0f} s')
    finally:
        pool.shutdown(cancel_futures=True)


def outcomes(work_dirs: Path) -> list[Outcome]:
    """Read the existing outcomes, ordered as :data:`CONTENDERS` and by seed."""
    found = []
    for contender in CONTENDERS:
        for file in sorted(work_dirs.glob(f'{contender.name}/seed_*/{_OUTCOME}')):
            found.append(Outcome(**json.loads(file.read_text(encoding='utf-8'))))
    return found


def _folder(work_dirs: Path, contender: Contender, seed: int) -> Path:
    return work_dirs / contender.name / f'seed_{seed}'


def _train(run: tuple[Contender, int], work_dirs: Path, threads: int) -> Outcome:
    contender, seed = run
    folder = _folder(work_dirs, *run)
    folder.mkdir(parents=True, exist_ok=True)
    words = [*train_command(), str(contender.config), '--work-dir', str(folder)]
    start = time.perf_counter()
    status = _start([*words, '--seed', str(seed), '--overwrite'], folder / _CONSOLE, threads)
    seconds = time.perf_counter() - start
    box, mask = (metric.key for metric in COCO.metrics)
    last = last_evaluation(folder, box)
    if status or last is None:
        raise UserError(
            f'{contender.name}, seed {seed}, stopped with exit status {status}: its output is in '
            f'{folder / _CONSOLE}'
        )
    where = machine('cpu', threads)
    outcome = Outcome(contender.name, seed, last[box], last.get(mask), round(seconds, 1), where)
    with written_whole(folder / _OUTCOME) as partial:
        partial.write_text(json.dumps(asdict(outcome), indent=1) + '\n', encoding='utf-8')
    return outcome


def _start(words: list[str], console: Path, threads: int) -> int:
    """Run a command on the CPU, save its output, and return its exit status."""
    environment = {
        'CUDA_VISIBLE_DEVICES': '',
        'OMP_NUM_THREADS': str(threads),
        # With busy waiting, threads become very slow when two runs share the cores.
        'OMP_WAIT_POLICY': 'passive',
    }
    with console.open('w', encoding='utf-8') as stream:
        return subprocess.call(
            words, env={**os.environ, **environment}, stdout=stream, stderr=subprocess.STDOUT
        )
