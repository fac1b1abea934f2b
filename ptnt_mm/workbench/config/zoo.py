"""Find, read and copy the configs that come with the package.

MMEngine, and torch with it, is imported where a config is read: a wrong name is refused at once.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import first_few, suggest, unknown_name

if TYPE_CHECKING:
    from mmengine.config import Config

PROJECT_CONFIG = 'config.py'
"""Name of the config in the folder of a project."""

SUFFIXES = ('.py', '.json', '.yaml', '.yml')
"""The files that MMEngine reads as configs."""

_PACKAGE = Path(__file__).resolve().parents[2]

_reading = RLock()  # reentrant: a config may read another one


def config_root() -> Path:
    """Return the folder of the configs: inside the wheel, or next to the package in a checkout.

    Raises:
        UserError: if there is no such folder.
    """
    for folder in (_PACKAGE / '.mim' / 'configs', _PACKAGE.parent / 'configs'):
        if (folder / '_base_').is_dir():
            return folder
    raise UserError(f'no configs were installed next to {_PACKAGE}: reinstall ptnt_mm')


def detector_names() -> tuple[str, ...]:
    """The models of ``ptnt new``, by their fragments; none if no configs were installed."""
    with suppress(UserError):
        fragments = config_root().glob('_base_/project/models/*.py')
        return tuple(sorted(file.stem for file in fragments))
    return ()


def config_names() -> list[str]:
    """Return the names that :func:`get_config` accepts."""
    return sorted(_files())


def _files() -> dict[str, Path]:
    """The configs by name: those for COCO, and those in the folders beside them."""
    root = config_root()
    return {file.stem: file for file in (*root.glob('*.py'), *root.glob('[!_]*/*.py'))}


def config_path(name: str) -> Path:
    """Return the file of a config, given its name without folder and extension.

    Raises:
        UserError: if there is no such config; suggests the closest name.
    """
    files = _files()
    if name not in files:
        raise UserError(unknown_name('config', name, sorted(files)))
    return files[name]


def find_config(path: str) -> Path:
    """Return the file of a config, given its path, the folder of its project, or its name.

    Raises:
        UserError: if there is none; suggests the closest name. If it is a file of another kind.
    """
    if Path(path).is_file():
        if Path(path).suffix not in SUFFIXES:
            raise UserError(
                f'{path} is not a config: expected a {", ".join(SUFFIXES[:-1])} or {SUFFIXES[-1]} '
                'file, the folder of a project, or a name of ptnt configs list'
            )
        return Path(path)
    if Path(path, PROJECT_CONFIG).is_file():
        return Path(path, PROJECT_CONFIG)
    if Path(path).is_dir():
        configs = first_few(map(str, sorted(Path(path).glob('*.py'))))
        raise UserError(
            f'{path} is neither a config nor a folder that ptnt new made: pass a config file, '
            f'such as {configs or "those that ptnt configs copy writes"}'
        )
    files = _files()
    if path in files:
        return files[path]
    suggestion = suggest(Path(path).stem, files)
    raise UserError(
        f'there is no config file {path}: {suggestion or "ptnt configs list prints the names"}'
    )


def names_config(word: str) -> bool:
    """Whether a word of a command is meant for :func:`find_config`, and is not a checkpoint."""
    return word.endswith('.py') or Path(word).is_dir() or word in _files()


def get_config(name: str) -> 'Config':
    """Read a config by name, such as ``'retinanet_ptnt_s_1x'``.

    Raises:
        UserError: if there is no such config; suggests the closest name.
    """
    return config_from_file(config_path(name))


def config_from_file(file: Path | str) -> 'Config':
    """Read a config file as MMEngine does, but find ``mmdet::`` bases by their path in the package.

    MMEngine parses all metafiles of the package first, 200 of mmdet, which takes longer than all
    the rest of reading a config, and finds none of OneDL's mmseg. No subclass can override it:
    MMEngine calls it by the name of its class, where it is replaced for one reader at a time. It
    still looks for what is not found by path.
    """
    from mmengine.config import Config

    def find(base: str, filename: str) -> tuple[str, str | None]:
        scope, _, path = base.rpartition('::')
        folder = _configs_of(scope) if scope else None
        if folder is not None and (folder / path).is_file():
            return str(folder / path), scope
        return find_base(base, filename)

    with _reading:
        find_base = Config._get_cfg_path
        Config._get_cfg_path = staticmethod(find)
        try:
            return Config.fromfile(file)
        finally:
            Config._get_cfg_path = staticmethod(find_base)


def _configs_of(package: str) -> Path | None:
    spec = find_spec(package)
    return Path(spec.origin).parent / '.mim' / 'configs' if spec and spec.origin else None


def copy_config(name: str, folder: Path) -> list[Path]:
    """Copy a config and all its bases into a folder, so that they can be edited.

    The config is put next to `_base_`, also if it lies in a folder here. Bases from other packages
    (``mmdet::...``) are not copied.

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
    """Copy fragments, such as '_base_/project/schedule.py', and their bases into a folder.

    Returns and raises what :func:`copy_config` does.
    """
    files = [file for name in names for file in _with_bases(config_root() / name)]
    return _copy(list(dict.fromkeys(files)), folder)


def _copy(sources: list[Path], folder: Path) -> list[Path]:
    copies = {folder / _place(source): _content(source) for source in sources}
    for target, content in copies.items():
        if target.exists() and target.read_bytes() != content:
            raise UserError(f'{target} exists and differs: choose another folder, or move it away')
    try:
        for target, content in copies.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    except OSError as error:
        raise UserError(f'{folder} cannot be written to: {error.strerror}') from error
    return list(copies)


def _place(file: Path) -> Path:
    """Where a copy is put in its folder: a config on top, a fragment in `_base_`."""
    path = file.relative_to(config_root())
    return path if path.parts[0] == '_base_' else Path(path.name)


def _content(file: Path) -> bytes:
    """The content of a copy: a config from a folder finds its bases from one level higher."""
    content = file.read_bytes()
    if _place(file) != file.relative_to(config_root()):
        for base, path in _own_bases(file).items():
            content = content.replace(repr(base).encode(), repr(_place(path).as_posix()).encode())
    return content


def _own_bases(file: Path) -> dict[str, Path]:
    """The bases of a config from the same package: as written there, and where they are."""
    from mmengine.config import Config

    bases = (base for base in Config._get_base_files(file) if '::' not in base)
    return {base: Path(os.path.abspath(file.parent / base)) for base in bases}


def _with_bases(path: Path) -> list[Path]:
    """List a config file and its bases from the same package, each once."""
    files = [path]
    for base in _own_bases(path).values():
        files += [file for file in _with_bases(base) if file not in files]
    return files
