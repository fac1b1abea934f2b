"""Find, read and copy the configs that come with the package."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from mmengine.config import Config

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name

_PACKAGE = Path(__file__).resolve().parents[1]


def config_root() -> Path:
    """Return the folder of the configs: inside the wheel, or next to the package in a checkout.

    Raises:
        UserError: if there is no such folder.
    """
    for folder in (_PACKAGE / '.mim' / 'configs', _PACKAGE.parent / 'configs'):
        if (folder / '_base_').is_dir():
            return folder
    raise UserError(f'no configs were installed next to {_PACKAGE}: reinstall ptnt_mm')


def config_names() -> list[str]:
    """Return the names that :func:`get_config` accepts."""
    return sorted(path.stem for path in config_root().glob('*.py'))


def config_path(name: str) -> Path:
    """Return the file of a config, given its name without folder and extension.

    Raises:
        UserError: if there is no such config; suggests the closest name.
    """
    if name not in config_names():
        raise UserError(unknown_name('config', name, config_names()))
    return config_root() / f'{name}.py'


def get_config(name: str) -> Config:
    """Read a config by name, such as ``'retinanet_ptnt_s_1x'``.

    Raises:
        UserError: if there is no such config; suggests the closest name.
    """
    return config_from_file(config_path(name))


def config_from_file(file: Path | str) -> Config:
    """Read a config file as MMEngine does, without parsing the metafiles of its bases' packages."""
    with _bases_of_hosts_by_path():
        return Config.fromfile(file)


@contextmanager
def _bases_of_hosts_by_path() -> Iterator[None]:
    """Let MMEngine find ``mmdet::`` bases by their path in the package.

    It parses all metafiles of the package first, 200 of mmdet, which takes longer than all the rest
    of reading a config. What is not found by path, it still looks for itself.
    """
    find_base = Config._get_cfg_path

    def find(base: str, filename: str) -> tuple[str, str | None]:
        scope, _, path = base.rpartition('::')
        package = find_spec(scope) if scope else None
        if package and package.origin:
            file = Path(package.origin).parent / '.mim' / 'configs' / path
            if file.is_file():
                return str(file), scope
        return find_base(base, filename)

    Config._get_cfg_path = staticmethod(find)
    try:
        yield
    finally:
        Config._get_cfg_path = staticmethod(find_base)


def copy_config(name: str, folder: Path) -> list[Path]:
    """Copy a config and all its bases into a folder, so that they can be edited.

    Bases from other packages (``mmdet::...``) are not copied.

    Args:
        name: The config's name.
        folder: Where to copy to; created if missing.

    Returns:
        The written files, the config first, then its bases.

    Raises:
        UserError: if the name is unknown, if one of the files already exists with other content,
            or if the folder cannot be written to.
    """
    return _copy(_with_bases(config_path(name)), folder)


def copy_bases(names: Iterable[str], folder: Path) -> list[Path]:
    """Copy fragments, such as '_base_/schedules/new.py', and their bases into a folder.

    Returns and raises what :func:`copy_config` does.
    """
    files = [file for name in names for file in _with_bases(config_root() / name)]
    return _copy(list(dict.fromkeys(files)), folder)


def _copy(sources: list[Path], folder: Path) -> list[Path]:
    """Copy configs, keeping their paths relative to the folder of configs."""
    targets = [folder / source.relative_to(config_root()) for source in sources]
    for source, target in zip(sources, targets, strict=True):
        if target.exists() and target.read_bytes() != source.read_bytes():
            raise UserError(f'{target} exists and differs: choose another folder, or move it away')
    try:
        for source, target in zip(sources, targets, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    except OSError as error:
        raise UserError(f'{folder} cannot be written to: {error.strerror}') from error
    return targets


def _with_bases(path: Path) -> list[Path]:
    """List a config file and its bases from the same package, each once."""
    files = [path]
    for base in Config._get_base_files(path):
        if '::' not in base:
            inherited = _with_bases((path.parent / base).resolve())
            files += [file for file in inherited if file not in files]
    return files
