"""Check what a command line names before PyTorch is imported, which takes seconds."""

import os
import shlex
from argparse import Namespace
from pathlib import Path

from ptnt_mm.cli.start import command_line
from ptnt_mm.config.zoo import find_config
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
    for key, check in (_OF_ALL | _OF_COMMAND.get(name, {})).items():
        if key in given:
            check(given[key], args)


def _launcher(launcher: str, args: Namespace) -> None:
    if launcher == 'pytorch' and 'RANK' not in os.environ:
        program, *words = command_line()
        words = ['-m', 'ptnt_mm', *words] if program == 'ptnt' else words
        raise UserError(
            '--launcher pytorch: start the processes with torchrun, such as one for each of 8 '
            f'GPUs:\n    torchrun --nproc_per_node 8 {shlex.join(words)}'
        )


def _config(config: str, args: Namespace) -> None:
    if Path(config).suffix in ('.yaml', '.yml') and _names_images(Path(config)):
        raise UserError(
            f'{config} names images and labels, and is no config: make a project of it first, '
            f'`ptnt new {config} PROJECT`'
        )
    if Path(config).is_dir() or Path(config).suffix in ('', '.py'):
        find_config(config)
    elif not Path(config).is_file():  # `ptnt infer` takes exported files as well
        raise UserError(f'there is no file {config}')


def _names_images(file: Path) -> bool:
    """Whether a file is a data.yaml, as YOLO's data sets have."""
    if not file.is_file():
        return False
    keys = {line.partition(':')[0] for line in file.read_text(errors='replace').splitlines()}
    return 'names' in keys and 'model' not in keys


def _checkpoint(checkpoint: str, args: Namespace) -> None:
    require_checkpoint(checkpoint)


def _run_or_checkpoint(load_from: str, args: Namespace) -> None:
    if not Path(load_from).is_dir():
        require_checkpoint(load_from)


def _resume(resume: str, args: Namespace) -> None:
    if resume != 'auto':
        require_checkpoint(resume)


def _weights(weights: str, args: Namespace) -> None:
    # A run that is resumed does not need them, but its command may be repeated.
    if weights not in ('published', 'none') and getattr(args, 'resume', None) is None:
        require_weights(weights)


def _weights_file(file: str, args: Namespace) -> None:
    require_checkpoint(locate(file))


def _export_file(out: Path, args: Namespace) -> None:
    from ptnt_mm.export.format_names import choose_format

    choose_format(out, args.format)
    check_new(out, args.overwrite)


def _new_file(out: Path, args: Namespace) -> None:
    check_new(out, args.overwrite)


def _format(name: str, args: Namespace) -> None:
    from ptnt_mm.data.recognise import require_known

    require_known(name, None)


def _task(name: str, args: Namespace) -> None:
    from ptnt_mm.data.recognise import require_known

    require_known(None, name)


def _detector(name: str, args: Namespace) -> None:
    from ptnt_mm.project.detectors import task_of

    task_of(name)


def _backbone(name: str, args: Namespace) -> None:
    from ptnt_mm.project.backbone_table import row_of

    row_of(name)


def _data(data: Path, args: Namespace) -> None:
    from ptnt_mm.project.folders import check_place, data_folder

    check_place(data_folder(data), args.folder)


def _project(project: str, args: Namespace) -> None:
    find_config(str(project))


def _source(source: str, args: Namespace) -> None:
    from ptnt_mm.data.image_files import require_source

    require_source(source)


def _folder(folder: Path, args: Namespace) -> None:
    if not folder.is_dir():
        raise UserError(f'there is no folder {folder}')


def _folders(folders: list[Path], args: Namespace) -> None:
    for folder in folders:
        _folder(folder, args)


def _checkpoint_and_images(files: list[str], args: Namespace) -> None:
    first, *images = files
    if images or not Path(first).is_dir():  # a folder alone has its own message
        for file in (first, *images):
            if not is_address(file) and not Path(file).exists():
                raise UserError(f'there is no file {file}')


_OF_ALL = {
    'launcher': _launcher,
    'config': _config,
    'checkpoint': _checkpoint,
    'load_from': _run_or_checkpoint,
    'resume': _resume,
    'pretrained': _weights,
    'weights': _weights,
    'teacher_weights': _weights,
    'calibrate': _folder,
    'work_dirs': _folders,
    'source': _source,
}
"""How an argument is checked, by its name; the checks of several are tried in this order."""

_OF_COMMAND = {
    'new': dict(
        data=_data,
        like=_config,
        format=_format,
        task=_task,
        detector=_detector,
        backbone=_backbone,
    ),
    'pretrain': dict(images=_folder, file=_new_file, backbone=_backbone),
    'report': dict(data=_project),
    'export': dict(out=_export_file),
    'visualize': dict(files=_checkpoint_and_images),
    'checkpoint': dict(file=_weights_file),
}
"""Arguments that only a command has, or that mean something else there."""
