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
from ptnt_mm.weights.published import locate, require_weights
from ptnt_mm.weights.reader.files import (
    check_written,
    is_address,
    is_hub_address,
    publishing_folder,
    require_checkpoint,
)
from ptnt_mm.workbench.cli.start import command_line
from ptnt_mm.workbench.config.zoo import PROJECT_CONFIG, find_config, names_config
from ptnt_mm.workbench.export.format_names import check_options, choose_format, files_of


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
        if {'pretrained', 'load_from'} <= given.keys():
            raise UserError(
                'a whole model contains the backbone too: use either `pretrained` or `load_from`'
            )
        for key in ('pretrained', 'weights'):
            if given.get(key, 'none') not in ('published', 'none'):
                require_weights(given[key])
    if 'json' in given and args.json != Path('-'):
        check_new(args.json, args.overwrite)
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
    if launcher != 'none':
        require_started(launcher)


def _config(config: str | Path) -> None:
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
    'config': _config,
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


def _new(args: Namespace) -> None:
    # NumPy and OpenCV, which other commands need not wait for here.
    from ptnt_mm.workbench.data.recognise import require_known
    from ptnt_mm.workbench.data.tiles import check_tiled
    from ptnt_mm.workbench.project.backbone_table import row_of
    from ptnt_mm.workbench.project.detectors import find_detector, task_of
    from ptnt_mm.workbench.project.folders import check_place, data_folder

    check_place(data_folder(args.data), args.folder)
    if args.like is not None:
        _config(args.like)
    require_known(args.format, args.task)
    task = args.task
    if args.detector is not None:
        task = task or task_of(args.detector)
        find_detector(args.detector, task)
    if task is not None:
        check_tiled(args.tile, task)
    if args.backbone is not None:
        row_of(args.backbone)


def _pretrain(args: Namespace) -> None:
    from ptnt_mm.workbench.data.image_files import find_images
    from ptnt_mm.workbench.project.backbone_table import is_run, row_of

    check_written(args.file)
    check_new(args.file, args.overwrite or args.resume is not None)
    row_of(args.backbone)
    is_run(args.teacher, args.teacher_weights)
    find_images(args.images)


def _test(args: Namespace) -> None:
    if args.out is not None and args.out.suffix not in ('.pkl', '.pickle'):
        raise UserError(f'--out {args.out}: expected a name that ends in .pkl')


_PAGES = ('report.html', 'data.html')  # where they are by default, pages are replaced


def _report(args: Namespace) -> None:
    if bool(args.work_dirs) == bool(args.data):
        raise UserError('expected the work dirs of runs, or --data with a project or a config')
    if args.data is not None:
        find_config(args.data)
    if args.out is not None and args.out.name not in _PAGES:
        check_new(args.out, args.overwrite)


def _infer(args: Namespace) -> None:
    from ptnt_mm.deploy.export_info import SUFFIXES
    from ptnt_mm.workbench.inference.options import check_options as check_infer
    from ptnt_mm.workbench.inference.source import Source

    source = Source(args.source)
    if Path(args.config).suffix in SUFFIXES and (
        args.checkpoint or args.cfg_options or args.device
    ):
        raise UserError(
            'expected a config and a checkpoint, or only an exported file, without --cfg-options '
            'and --device'
        )
    names = ('overwrite', 'labels', 'tile', 'overlap', 'track', 'show')
    check_infer(source, infer_out(args), **{name: getattr(args, name) for name in names})


def infer_out(args: Namespace) -> Path:
    """The folder of the results of ``ptnt infer``: by default that of a project, if it is one."""
    from ptnt_mm.workbench.inference.source import Source

    out = args.out or Source(args.source).default_out
    is_project = args.out is None and Path(args.config, PROJECT_CONFIG).is_file()
    return Path(args.config, 'infer', out.name) if is_project else out


def _export(args: Namespace) -> None:
    if args.int8 != (args.calibrate is not None):
        raise UserError('--int8 and --calibrate FOLDER belong together: pass both')
    format = choose_format(args.out, args.format)
    check_options(format, args.half, args.calibrate, args.evaluate)
    for file in files_of(args.out):
        check_new(file, args.overwrite)


def _visualize(args: Namespace) -> None:
    from ptnt_mm.workbench.pages.visualize.folder import choose_page

    checkpoint, images = checkpoint_and_images(args.files)
    *configs, other = args.versus or [args.config]
    if len(configs) > 1:
        raise UserError('--versus takes a checkpoint, a config, or a config and a checkpoint')
    for config in configs:
        find_config(config)
    for file in filter(None, (checkpoint, *images, other)):
        if not (is_address(file) or Path(file).exists() or names_config(file)):
            raise UserError(f'there is no file {file}')
    choose_page(find_config(args.config), args.out, args.overwrite)


def checkpoint_and_images(files: list[str]) -> tuple[str | None, list[str]]:
    """The files of ``ptnt visualize``: a checkpoint, if the first is none of the images.

    Raises:
        UserError: if there is no image.
    """
    from ptnt_mm.deploy.decoding import FORMATS

    if Path(files[0]).suffix.lower() in FORMATS:
        return None, files
    checkpoint, *images = files
    if not images and Path(checkpoint).exists():
        what = 'a folder: name its images' if Path(checkpoint).is_dir() else 'not an image: add one'
        raise UserError(f'{checkpoint} is {what}')
    return checkpoint, images


def _checkpoint(args: Namespace) -> None:
    require_checkpoint(locate(args.file))
    if args.command == 'convert':
        check_written(args.out)
        check_new(args.out, args.overwrite)
    if args.command == 'publish' and not (args.out and is_hub_address(args.out)):
        publishing_folder(locate(args.file), args.out and Path(args.out))


def _complexity(args: Namespace) -> None:
    if Path(args.model).suffix == '.py':
        find_config(args.model)


_OF_COMMAND = {
    'new': _new,
    'pretrain': _pretrain,
    'test': _test,
    'report': _report,
    'infer': _infer,
    'export': _export,
    'visualize': _visualize,
    'checkpoint': _checkpoint,
    'complexity': _complexity,
}
"""The checks of arguments that only a command has, or that mean something else there."""
