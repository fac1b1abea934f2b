"""Check what a command line names before PyTorch is imported, which takes seconds."""

import os
import shlex
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ptnt_mm.utils.atomic_files import check_folder, check_new
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.imports import require_packages
from ptnt_mm.utils.launchers import require_started
from ptnt_mm.weights.published import require_weights
from ptnt_mm.weights.reader.files import require_checkpoint
from ptnt_mm.workbench.cli.start import command_line
from ptnt_mm.workbench.config.zoo import find_config


def check_given(args: Namespace) -> None:
    """Raise a UserError if files, folders or packages that are given are not there.

    Arguments are known by their names here; a command's own module checks what depends on several.
    """
    given = {key: value for key, value in vars(args).items() if value is not None}
    for key, check in _OF_ALL.items():
        if key in given:
            check(given[key])
    # A run that is resumed does not need them, but its command may be repeated.
    if 'resume' not in given:
        if {'pretrained', 'load_from'} <= given.keys():
            raise UserError(
                'a whole model contains the backbone too: use either `pretrained` or `load_from`'
            )
        for key in ('pretrained', 'weights'):
            if given.get(key, 'none') not in ('published', 'none'):
                require_weights(given[key])
    if 'json' in given and args.json != Path('-'):
        check_new(args.json, args.overwrite)


def _launcher(launcher: str) -> None:
    if launcher == 'pytorch' and 'RANK' not in os.environ:
        program, *words = command_line()
        words = ['-m', 'ptnt_mm', *words] if program == 'ptnt' else words
        raise UserError(
            '--launcher pytorch: start the processes with torchrun, such as one for each of 8 '
            f'GPUs:\n    torchrun --nproc_per_node 8 {shlex.join(words)}'
        )
    if launcher != 'none':
        require_started(launcher)


def check_config(config: str | Path) -> None:
    """Refuse a config, a project or an exported file that is not there."""
    file = Path(config)
    if file.suffix in ('.yaml', '.yml') and _names_images(file):
        raise UserError(
            f'{config} lists images and labels, and is not a config: create a project first, '
            f'`ptnt new {config} PROJECT`'
        )
    if file.is_dir() or file.suffix in ('', '.py'):
        find_config(config)
    elif not file.is_file():  # `ptnt infer` takes exported files as well
        raise UserError(f'there is no file {config}')


def _names_images(file: Path) -> bool:
    """Whether a file is a data.yaml, as YOLO's data sets have."""
    if not file.is_file():
        return False
    keys = {line.partition(':')[0] for line in file.read_text(errors='replace').splitlines()}
    return 'names' in keys and 'model' not in keys


def _folders(*folders: Path) -> None:
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f'there is no folder {folder}')


_OF_ALL: dict[str, Callable[[Any], object]] = {
    'launcher': _launcher,
    'config': check_config,
    'checkpoint': require_checkpoint,
    'load_from': lambda path: Path(path).is_dir() or require_checkpoint(path),
    'resume': lambda path: path == 'auto' or require_checkpoint(path),
    'calibrate': _folders,
    'data_root': lambda folder: '://' in folder or _folders(Path(folder)),
    'work_dir': partial(check_folder, 'work_dir'),
    'show_dir': partial(check_folder, 'show_dir'),
    'log': lambda package: require_packages(f'`log={package}`', package),
    'work_dirs': lambda folders: _folders(*folders),
}
"""How an argument is checked, by its name; the checks of several are tried in this order."""
