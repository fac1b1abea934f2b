"""Check what a command line names before PyTorch is imported, which takes seconds."""

import os
import shlex
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ptnt_mm.cli.start import command_line
from ptnt_mm.config.zoo import find_config
from ptnt_mm.export.format_names import choose_format
from ptnt_mm.utils.atomic_files import check_new
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.published import locate, require_weights
from ptnt_mm.weights.reader.files import is_address, require_checkpoint


def check_given(name: str, args: Namespace) -> None:
    """Raise a UserError if files, folders or names that a command is given are not there.

    Args:
        name: The command.
        args: Its arguments.
    """
    given = {key: value for key, value in vars(args).items() if value is not None}
    for key, check in _OF_ALL.items():
        if key in given:
            check(given[key])
    # A run that is resumed does not need them, but its command may be repeated.
    if 'resume' not in given:
        for key in ('pretrained', 'weights', 'teacher_weights'):
            if given.get(key, 'none') not in ('published', 'none'):
                require_weights(given[key])
    if name in _OF_COMMAND:
        _OF_COMMAND[name](args)


def _launcher(launcher: str) -> None:
    if launcher == 'pytorch' and 'RANK' not in os.environ:
        program, *words = command_line()
        words = ['-m', 'ptnt_mm', *words] if program == 'ptnt' else words
        raise UserError(
            '--launcher pytorch: start the processes with torchrun, such as one for each of 8 '
            f'GPUs:\n    torchrun --nproc_per_node 8 {shlex.join(words)}'
        )


def _config(config: str | Path) -> None:
    file = Path(config)
    if file.suffix in ('.yaml', '.yml') and _names_images(file):
        raise UserError(
            f'{config} names images and labels, and is no config: make a project of it first, '
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
    'config': _config,
    'checkpoint': require_checkpoint,
    'load_from': lambda path: Path(path).is_dir() or require_checkpoint(path),
    'resume': lambda path: path == 'auto' or require_checkpoint(path),
    'calibrate': _folders,
    'data_root': lambda folder: '://' in folder or _folders(Path(folder)),
    'work_dirs': lambda folders: _folders(*folders),
}
"""How an argument is checked, by its name; the checks of several are tried in this order."""


def _new(args: Namespace) -> None:
    # NumPy and OpenCV, which other commands need not wait for here.
    from ptnt_mm.data.recognise import require_known
    from ptnt_mm.project.detectors import task_of
    from ptnt_mm.project.folders import check_place, data_folder

    check_place(data_folder(args.data), args.folder)
    if args.like is not None:
        _config(args.like)
    require_known(args.format, args.task)
    if args.detector is not None:
        task_of(args.detector)
    if args.backbone is not None:
        _backbone(args.backbone)


def _backbone(name: str) -> None:
    from ptnt_mm.project.backbone_table import row_of

    row_of(name)


def _pretrain(args: Namespace) -> None:
    from ptnt_mm.data.image_files import find_images

    check_new(args.file, args.overwrite)
    find_images(args.images)
    _backbone(args.backbone)


def _report(args: Namespace) -> None:
    if args.data is not None:
        find_config(args.data)


def _infer(args: Namespace) -> None:
    from ptnt_mm.data.image_files import require_source

    require_source(args.source)


def _export(args: Namespace) -> None:
    choose_format(args.out, args.format)
    check_new(args.out, args.overwrite)


def _visualize(args: Namespace) -> None:
    first, *images = args.files
    if images or not Path(first).is_dir():  # a folder alone has its own message
        for file in (first, *images):
            if not is_address(file) and not Path(file).exists():
                raise UserError(f'there is no file {file}')


_OF_COMMAND = {
    'new': _new,
    'pretrain': _pretrain,
    'report': _report,
    'infer': _infer,
    'export': _export,
    'visualize': _visualize,
    'checkpoint': lambda args: require_checkpoint(locate(args.file)),
}
"""The checks of arguments that only a command has, or that mean something else there."""
