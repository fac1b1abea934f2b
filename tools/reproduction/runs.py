"""The runs of the model zoo: the command for each.

Torch is imported where a config, a model or a checkpoint is read: most commands need none.
"""

from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.published import published_files
from ptnt_mm.workbench.config.zoo import get_config
from reproduction.entries import Entry


def recipe_command(entry: Entry, weights_folder: Path, gpus: int) -> list[str]:
    """Return the command that trains a config, or resumes its run, on GPUs of this machine.

    Raises:
        UserError: if the batch cannot be divided among the GPUs.
    """
    command = ['ptnt', 'train', entry.name]
    if gpus > 1:
        start = f'torchrun --standalone --nproc_per_node {gpus} -m ptnt_mm'.split()
        command = [*start, *command[1:], '--launcher', 'pytorch']
    return [*command, *recipe_flags(entry, weights_folder, gpus)]


def recipe_flags(entry: Entry, weights_folder: Path, gpus: int) -> list[str]:
    """Return the flags of `ptnt train` for a config, on GPUs of one or more machines.

    With more GPUs than the recipe's, or with any other number for a schedule in iterations, each
    GPU gets its share of the recipe's batch; in iterations, a different batch would change the
    number of images seen. On fewer GPUs, a schedule in epochs has a smaller batch, as memory may
    not allow more, and scales the learning rate with it.

    Raises:
        UserError: if the batch cannot be divided among the GPUs.
    """
    flags = ['--pretrained', str(weights_folder / entry.weights)] if entry.weights else []
    # Without a checkpoint, --resume starts from the beginning, with the pretrained weights.
    flags += ['--resume']
    if gpus == entry.gpus:
        return flags
    if entry.unit == 'epoch' and gpus < entry.gpus:
        return [*flags, '--auto-scale-lr']
    config = get_config(entry.name)
    batch = config.auto_scale_lr.base_batch_size
    steps = config.optim_wrapper.get('accumulative_counts', 1)
    if entry.unit == 'epoch' and batch % (gpus * steps):
        return [*flags, '--auto-scale-lr']
    if batch % (gpus * steps):
        raise UserError(
            f'--gpus {gpus}: {entry.name} has {batch} images in an iteration, which cannot be '
            f'divided evenly among the GPUs: expected a divisor of {batch}'
        )
    return [*flags, '--cfg-options', f'train_dataloader.batch_size={batch // (gpus * steps)}']


def cost(entry: Entry) -> tuple[float, float]:
    """Millions of parameters, and multiply-adds for an image of the papers, in units of 1e9."""
    from ptnt_mm.complexity import measure_complexity
    from ptnt_mm.workbench.config.build import build_by_name

    total = measure_complexity(build_by_name(entry.name), entry.shape).total
    return total.parameters / 1e6, total.multiply_adds / 1e9


def require_weights(entry: Entry, folder: Path) -> None:
    """Check that the file of pretrained weights exists and is intact, if the config needs one.

    Raises:
        UserError: if it is missing, with the page to download it from, or cannot be read.
    """
    if not entry.weights:
        return
    file = folder / entry.weights
    if not file.is_file():
        source, _ = published_files()[f'ptnt_{entry.size}']
        raise UserError(
            f'{file} is missing: open {source.url} in a browser (password '
            f'{source.password}), and save the file there; --weights sets another folder'
        )
    from ptnt_mm.weights.reader.read import read_checkpoint

    # A browser may have saved a web page under this name. Find out before downloading COCO, 20 GB.
    read_checkpoint(file, 'meta')
