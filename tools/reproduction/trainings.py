"""Train configs one after the other, each from its last checkpoint."""

import subprocess
import sys
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.zoo import config_path, config_root
from reproduction.entries import Entry

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

    On another number of GPUs than the recipe's, in epochs, batch and learning rate change together.
    In iterations, another batch would change the total of images, so the batch is kept and divided
    among the GPUs.

    Raises:
        UserError: if the file with its backbone's weights is missing, or the recipe does not fit
            the number of GPUs.
    """
    schedule, weights = entry.schedule, _pretrained(entry, weights_folder)
    command = [*train_command(gpus), str(config_path(entry.name))]
    # Without a checkpoint, --resume starts from the beginning, with the pretrained weights.
    command += ['--work-dir', str(work_dir), *weights, '--resume']
    if gpus == schedule.gpus:
        return command
    if schedule.unit == 'epoch':
        return [*command, '--auto-scale-lr']
    if schedule.images % gpus:
        fitting = [str(n) for n in range(1, schedule.images + 1) if schedule.images % n == 0]
        raise UserError(
            f'--gpus {gpus}: the {schedule.images} images of an iteration cannot be divided evenly '
            f'among the GPUs: expected one of {", ".join(fitting)}'
        )
    batch = schedule.images // gpus
    return [*command, '--cfg-options', f'train_dataloader.batch_size={batch}']


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
