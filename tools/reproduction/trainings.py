"""Train configs one after the other, each from its last checkpoint."""

import subprocess
import sys
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.zoo import config_path, config_root
from reproduction.entries import Entry, Schedule

WEIGHTS_SOURCE = 'https://github.com/huawei-noah/Efficient-AI-Backbones/tree/master/tnt_pytorch'
"""The README there links each file on Baidu Disk and gives the password."""


def train_command(gpus: int = 1) -> list[str]:
    """Return the command that starts ``tools/train.py`` on a number of GPUs of this machine."""
    tool = str(config_root().parent / 'tools' / 'train.py')
    if gpus == 1:
        return [sys.executable, tool]
    ranks = ['-m', 'torch.distributed.run', '--standalone', '--nproc_per_node', str(gpus)]
    return [sys.executable, *ranks, tool, '--launcher', 'pytorch']


def recipe_command(entry: Entry, work_dir: Path, weights_folder: Path, gpus: int) -> list[str]:
    """Return the command that trains an entry, or resumes its training.

    Raises:
        UserError: if the file with its backbone's weights is missing, or the recipe does not fit
            the number of GPUs.
    """
    # Without a checkpoint, --resume starts from the beginning, with the pretrained weights.
    start = ['--work-dir', str(work_dir), *_pretrained(entry, weights_folder), '--resume']
    config = str(config_path(entry.name))
    return [*train_command(gpus), config, *start, *_recipe_flags(entry.schedule, gpus)]


def _pretrained(entry: Entry, weights_folder: Path) -> list[str]:
    if entry.weights is None:
        return []
    weights = weights_folder / entry.weights
    if not weights.is_file():
        raise UserError(
            f'{weights} is missing: its authors link it, with a password, on {WEIGHTS_SOURCE}. '
            'Save it under this name, or name the folder that holds it with --weights'
        )
    return ['--pretrained', str(weights)]


def _recipe_flags(schedule: Schedule, gpus: int) -> list[str]:
    """The flags of ``tools/train.py`` that keep the recipe on another number of GPUs.

    In epochs, batch and learning rate change together. In iterations, another batch would change
    the total of images, so the batch is kept and divided among the GPUs.
    """
    if gpus == schedule.gpus:
        return []
    if schedule.unit == 'epoch':
        return ['--auto-scale-lr']
    if schedule.images % gpus:
        fitting = [str(n) for n in range(1, schedule.images + 1) if schedule.images % n == 0]
        raise UserError(
            f'--gpus {gpus}: the {schedule.images} images of an iteration cannot be divided evenly '
            f'among the GPUs: expected one of {", ".join(fitting)}'
        )
    return ['--cfg-options', f'train_dataloader.batch_size={schedule.images // gpus}']


def run_trainings(commands: dict[Path, list[str]]) -> None:
    """Run commands, by their work dirs, one after the other.

    Raises:
        UserError: at the first training that fails; says where its log is.
    """
    for work_dir, command in commands.items():
        status = subprocess.call(command)
        if status:
            logs = sorted(work_dir.glob('*/*.log'))
            where = f'its log is {logs[-1]}' if logs else 'it ended before it had a log'
            raise UserError(
                f'{work_dir.name} stopped with exit status {status}; {where}. The same command '
                'resumes from its last checkpoint'
            )
