"""Training what is asked for, one config after the other, each from where it stands."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ptnt_mm.errors import UserError
from ptnt_mm.reproduce.collect import collect
from ptnt_mm.reproduce.entries import Entry
from ptnt_mm.reproduce.weights import find
from ptnt_mm.zoo import config_path, config_root


@dataclass(frozen=True)
class Place:
    """Where and on what to train.

    Attributes:
        work_dirs: The folder of the runs' folders.
        weights: The folder of the authors' files.
        gpus: How many, of this machine.
    """

    work_dirs: Path
    weights: Path
    gpus: int


def train_command() -> list[str]:
    """How ``tools/train.py`` is started; it lies beside the configs."""
    return [sys.executable, str(config_root().parent / 'tools' / 'train.py')]


def command(entry: Entry, place: Place) -> list[str]:
    """What trains an entry, or goes on with it.

    Raises:
        UserError: if the file of its backbone's weights is not there, or the number of GPUs cannot
            keep its recipe.
    """
    weights = find(entry.size, place.weights)
    starter, *tool = train_command()
    if place.gpus > 1:
        ranks = ['-m', 'torch.distributed.run', '--standalone', '--nproc_per_node', str(place.gpus)]
        starting, launcher = [starter, *ranks, *tool], ['--launcher', 'pytorch']
    else:
        starting, launcher = [starter, *tool], []
    # Where nothing was saved yet, --resume starts at the beginning, from the weights.
    resume = ['--pretrained', str(weights), '--resume']
    recipe = entry.schedule.flags(place.gpus)
    work_dir = ['--work-dir', str(place.work_dirs / entry.name)]
    return [*starting, str(config_path(entry.name)), *work_dir, *resume, *recipe, *launcher]


def unfinished(
    chosen: list[Entry], place: Place, tell: Callable[[str], None]
) -> dict[Entry, list[str]]:
    """The commands of what is not finished; tells, as comments of a shell, how far each entry is.

    Raises:
        UserError: if weights are missing.
    """
    commands = {}
    for entry in chosen:
        progress = collect(entry, place.work_dirs)
        tell(f'# {progress}')
        if not progress.finished:
            commands[entry] = command(entry, place)
    return commands


def run(commands: dict[Entry, list[str]], place: Place) -> None:
    """Train one after the other.

    Raises:
        UserError: at the first training that fails: says where its log is.
    """
    for entry, words in commands.items():
        status = subprocess.call(words)
        if status:
            raise UserError(
                f'{entry.name} stopped with exit status {status}; '
                f'{_log_place(place.work_dirs / entry.name)}. The same command goes on from its '
                'last checkpoint'
            )


def _log_place(work_dir: Path) -> str:
    """Where the log of a run's last start is, in words."""
    logs = sorted(work_dir.glob('*/*.log'))
    return f'its log is {logs[-1]}' if logs else 'it ended before it had a log'
