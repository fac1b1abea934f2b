"""Read a config, with errors that a user can act on."""

import ast
import inspect
import re
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

from mmengine.config import Config, ConfigDict, DictAction
from mmengine.registry import build_from_cfg
from mmengine.runner import Runner

from ptnt_mm.engine.constructors import arguments, registered_names
from ptnt_mm.engine.hosts import how_to_install
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import first_few, suggest, unknown_name
from ptnt_mm.zoo import config_from_file, config_names, config_path

# Top-level keys of a config that MMEngine and the hosts read, besides the runner's arguments.
_TOP_LEVEL = {
    'activation_checkpointing',
    'compile',
    'custom_imports',
    'efficient_conv_bn_eval',
    'find_unused_parameters',
    'model_wrapper_cfg',
    'runner_type',
    'sync_bn',
    'tta_model',
    'tta_pipeline',
}
PROJECT_CONFIG = 'config.py'
"""Name of the config in the folder of a project."""

READ_KEYS = (set(inspect.signature(Runner).parameters) | _TOP_LEVEL) - {'cfg'}

# Characters: the longest config of the hosts has 270,000. Syntax trees are 100 times as large.
_LONGEST_CONFIG = 2**19

# For deep nesting, Python 3.13 raises a MemoryError, and older versions a RecursionError.
_UNREADABLE = (SyntaxError, TypeError, ValueError, RecursionError, MemoryError)

_NOT_REGISTERED = re.compile(r'(\w+) is not in the (\S+) registry')
_REFUSED = re.compile(r"unexpected keyword argument '(\w+)'")


def read_config(path: str, options: dict | None = None) -> Config:
    """Read a config file, a project's or one of this package's by name; apply ``--cfg-options``.

    Raises:
        UserError: if there is no such file, if it cannot be executed, if it needs a package that
            is not installed, or if nothing reads an option's first key.
    """
    file = _find_config(path)
    try:
        config = config_from_file(file)
    except ModuleNotFoundError as error:
        raise UserError(
            f'{file} needs a package that is not installed: {error}. {how_to_install(error)}'
        ) from error
    except ImportError as error:
        raise UserError(
            f'{file}: a module in custom_imports could not be imported: {error}'
        ) from error
    except Exception as error:  # a config is a program: it may raise anything
        kind = type(error).__name__
        raise UserError(f'{file} is not a valid config: {kind}: {error}') from error
    apply_options(config, options or {})
    return config


def parse_options(words: Sequence[str]) -> dict:
    """Read the words of ``--cfg-options``, such as 'train_cfg.max_epochs=3', as MMEngine does.

    Raises:
        UserError: if a word is not KEY=VALUE, or a list has no end.
    """
    namespace = SimpleNamespace()
    try:
        DictAction(['--cfg-options'], 'options')(None, namespace, words)
    except (AssertionError, IndexError, ValueError) as error:
        raise UserError(
            f'--cfg-options {" ".join(words)}: expected KEY=VALUE ..., with a number, a word, or a '
            f"quoted list such as '[1,2]' ({error})"
        ) from error
    return namespace.options


def apply_options(config: Config, options: dict) -> None:
    """Merge ``--cfg-options``, dotted keys and values, into a config.

    Raises:
        UserError: if nothing reads the first part of a key, or if a path leads through a value
            without keys.
    """
    for key in options:
        first = key.partition('.')[0]
        if first in READ_KEYS:
            continue
        if first in config:
            raise UserError(
                f'--cfg-options {key}: {first} was used while the file was read, and changing it '
                'now would have no effect: set the keys it was used for, such as '
                'train_cfg.max_epochs or train_dataloader.dataset.data_root'
            )
        raise UserError(f'--cfg-options {key}: {unknown_name("key", first, sorted(READ_KEYS))}')
    try:
        config.merge_from_dict(options)
    except (AssertionError, AttributeError, KeyError, TypeError) as error:
        raise UserError(f'--cfg-options {" ".join(options)}: {error}') from error


def require_keys(config: Config, keys: Iterable[str]) -> None:
    """Raise a UserError if a key that a command needs is missing from a config, or None."""
    missing = [key for key in keys if config.get(key) is None]
    if missing:
        name = config.filename or 'the config'
        raise UserError(f'{name} lacks {", ".join(missing)}: give a complete config')


def kind_of(settings: Mapping) -> str:
    """The class name in settings, without its scope; empty if there is none."""
    kind = settings.get('type') or ''
    return getattr(kind, '__name__', str(kind)).rpartition('.')[2]


def within(settings: object, path: str) -> Iterator[tuple[str, Mapping]]:
    """Yield settings and all dicts inside them, each with its path, such as 'model.neck[0]'."""
    if isinstance(settings, Mapping):
        yield path, settings
        for key, value in settings.items():
            yield from within(value, f'{path}.{key}')
    elif isinstance(settings, (list, tuple)):
        for i, value in enumerate(settings):
            yield from within(value, f'{path}[{i}]')


def flat_settings(settings: dict, prefix: str = '') -> dict[str, str]:
    """The repr of each value of settings by its dotted key; a list is one value."""
    flat = {}
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            flat.update(flat_settings(value, f'{prefix}{key}.'))
        else:
            flat[f'{prefix}{key}'] = repr(value)
    return flat


def is_about_the_config(error: Exception) -> bool:
    """Whether an error means that a name in a config is not registered."""
    return bool(_REFUSED.search(str(error)) or _NOT_REGISTERED.search(str(error)))


def explain_build_error(error: Exception) -> str:
    """Explain in one line what a constructor refused; suggest the nearest argument or class."""
    refused, absent = _REFUSED.search(str(error)), _NOT_REGISTERED.search(str(error))
    cls = _class_being_built(error)
    if refused and cls is not None:
        return f'{cls.__name__}: {unknown_name("argument", refused[1], arguments(cls).parameters)}'
    if absent:
        return unknown_name('type', absent[1], sorted(registered_names(absent[2])))
    return str(error) or type(error).__name__


def stored_config(text: str) -> ConfigDict:
    """Read the config text stored in a checkpoint as data, without executing it.

    ``Config.pretty_text`` writes assignments of literals and ``dict(...)``; others are ignored.
    """
    settings = ConfigDict()
    if not isinstance(text, str) or len(text) > _LONGEST_CONFIG:
        return settings
    try:
        with warnings.catch_warnings(action='ignore'):
            statements = ast.parse(text).body
    except _UNREADABLE:
        return settings
    for statement in statements:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            with suppress(*_UNREADABLE):
                value = ast.literal_eval(_DictCalls().visit(statement.value))
                repr(value)  # Python does not print integers of thousands of digits
                settings[statement.targets[0].id] = value
    return settings


class _DictCalls(ast.NodeTransformer):
    """Rewrites ``dict(key=value)`` as ``{'key': value}``, which is a literal."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if node.args or not isinstance(node.func, ast.Name) or node.func.id != 'dict':
            return node
        names = [ast.Constant(keyword.arg) for keyword in node.keywords]
        return ast.Dict(names, [keyword.value for keyword in node.keywords])


def _find_config(path: str) -> Path:
    if Path(path).is_file():
        return Path(path)
    if Path(path, PROJECT_CONFIG).is_file():
        return Path(path, PROJECT_CONFIG)
    if Path(path).is_dir():
        configs = first_few(map(str, sorted(Path(path).glob('*.py'))))
        raise UserError(
            f'{path} is neither a config nor a folder that ptnt new made: give a config file, '
            f'such as {configs or "those that ptnt configs copy writes"}'
        )
    if path in config_names():
        return config_path(path)
    near = suggest(Path(path).stem, config_names())
    raise UserError(f'there is no config file {path}: {near or "ptnt configs lists the names"}')


def _class_being_built(error: Exception) -> type | None:
    """The class whose constructor MMEngine's registry called, from the traceback."""
    cls = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is build_from_cfg.__code__:
            cls = frame.f_locals.get('obj_cls')
    return cls if isinstance(cls, type) else None
