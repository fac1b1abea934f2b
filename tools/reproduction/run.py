"""Train configs one after the other, each from its last checkpoint."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.zoo import config_path, config_root
from reproduction.collect import collect
from reproduction.entries import Entry
from reproduction.weights import find


@dataclass(frozen=True)
class Place:
    """Where and on what to train.

    Attributes:
        work_dirs: The folder that holds a work dir for each run.
        weights: The folder with the authors' weight files.
        gpus: Number of GPUs of this machine to use.
    """

    work_dirs: Path
    weights: Path
    gpus: int


def train_command() -> list[str]:
    """Return the command that starts ``tools/train.py`` of the checkout."""
    return [sys.executable, str(config_root().parent / 'tools' / 'train.py')]


def command(entry: Entry, place: Place) -> list[str]:
    """Return the command that trains an entry, or resumes its training.

    Raises:
        UserError: if the file with its backbone's weights is missing, or the recipe does not fit
            the number of GPUs.
    """
    weights = find(entry.size, place.weights)
    starter, *tool = train_command()
    if place.gpus > 1:
        ranks = ['-m', 'torch.distributed.run', '--standalone', '--nproc_per_node', str(place.gpus)]
        starting, launcher = [starter, *ranks, *tool], ['--launcher', 'pytorch']
    else:
        starting, launcher = [starter, *tool], []
    # Without a checkpoint, --resume starts from the beginning, with the pretrained weights.
    resume = ['--pretrained', str(weights), '--resume']
    recipe = entry.schedule.flags(place.gpus)
    work_dir = ['--work-dir', str(place.work_dirs / entry.name)]
    return [*starting, str(config_path(entry.name)), *work_dir, *resume, *recipe, *launcher]


def unfinished(
    chosen: list[Entry], place: Place, tell: Callable[[str], None]
) -> dict[Entry, list[str]]:
    """Return the commands of unfinished entries; report every entry's state as a shell comment.

    Raises:
        UserError: as :func:`command`.
    """
    commands = {}
    for entry in chosen:
        progress = collect(entry, place.work_dirs)
        tell(f'# {progress}')
        if not progress.finished:
            commands[entry] = command(entry, place)
    return commands


def run(commands: dict[Entry, list[str]], place: Place) -> None:
    """Run the commands one after the other.

    Raises:
        UserError: at the first training that fails; says where its log is.
    """
    for entry, words in commands.items():
        status = subprocess.call(words)
        if status:
            raise UserError(
                f'{entry.name} stopped with exit status {status}; '
                f'{_log_place(place.work_dirs / entry.name)}. The same command resumes from its '
                'last checkpoint'
            )


def _log_place(work_dir: Path) -> str:
    """Say where the log of a run's last start is."""
    logs = sorted(work_dir.glob('*/*.log'))
    return f'its log is {logs[-1]}' if logs else 'it ended before it had a log'
