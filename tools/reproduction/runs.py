"""The runs of the model zoo: the command for each, and its progress."""

from collections.abc import Mapping
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.scalar_logs import read_scalars, scalar_files
from ptnt_mm.zoo import get_config
from reproduction.entries import Entry, Figures


def recipe_command(entry: Entry, weights_folder: Path, gpus: int) -> list[str]:
    """Return the command that trains a config, or resumes its run, on GPUs of this machine.

    If the number of GPUs differs from the recipe's, a schedule in epochs scales the learning rate
    with the batch. One in iterations divides the batch among the GPUs, because another batch would
    change the number of images seen.

    Raises:
        UserError: if the batch cannot be divided among the GPUs.
    """
    command = ['ptnt', 'train', entry.name]
    if gpus > 1:
        start = f'torchrun --standalone --nproc_per_node {gpus} -m ptnt_mm'.split()
        command = [*start, *command[1:], '--launcher', 'pytorch']
    if entry.weights:
        command += ['--pretrained', str(weights_folder / entry.weights)]
    # Without a checkpoint, --resume starts from the beginning, with the pretrained weights.
    command += ['--resume']
    if gpus == entry.gpus:
        return command
    if entry.unit == 'epoch':
        return [*command, '--auto-scale-lr']
    batch = get_config(entry.name).auto_scale_lr.base_batch_size
    if batch % gpus:
        raise UserError(
            f'--gpus {gpus}: {entry.name} has {batch} images in an iteration, which cannot be '
            f'divided evenly among the GPUs: expected a divisor of {batch}'
        )
    return [*command, '--cfg-options', f'train_dataloader.batch_size={batch // gpus}']


def last_evaluation(work_dir: Path, metrics: Mapping[str, str]) -> tuple[int, Figures]:
    """Return the epoch or iteration of a run's last evaluation, and its figures.

    The logs of all resumes count. Before the first evaluation they are 0 and empty.

    Raises:
        UserError: if a log was not written by MMEngine.
    """
    last = {'step': 0}
    # Log files are sorted by time, so the last line is from the latest run.
    for file in scalar_files(work_dir):
        for line in read_scalars(file):
            last = line if any(key in line for key in metrics.values()) else last
    # COCO's figures are fractions; -1 marks one that cannot be evaluated without objects.
    figures = {name: last[key] for name, key in metrics.items() if last.get(key, -1) >= 0}
    wholes = {name: 100 if metrics[name].startswith('coco/') else 1 for name in figures}
    return last['step'], {name: round(figures[name] * wholes[name], 1) for name in figures}
