"""Read a config, with errors that a user can act on."""

import ast
import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

from mmengine.config import Config, DictAction
from mmengine.runner import Runner

from ptnt_mm.models.backbone import full_names, read_arch
from ptnt_mm.utils.errors import UserError, in_quotes
from ptnt_mm.utils.frames import one_line, place_in_own_code
from ptnt_mm.utils.text import first_few, printable, unknown_name
from ptnt_mm.workbench.config.causes import Kind, explain
from ptnt_mm.workbench.config.data_root import use_data_root
from ptnt_mm.workbench.config.literals import literal
from ptnt_mm.workbench.config.registered import classes_named
from ptnt_mm.workbench.config.settings import (
    dicts_within,
    flat_settings,
    scope_of,
    short_name,
    with_moved_classes,
)
from ptnt_mm.workbench.config.zoo import config_from_file, find_config

# Top-level keys of a config that MMEngine and the hosts read, besides the runner's arguments.
_TOP_LEVEL = {
    'activation_checkpointing',
    'compile',
    'custom_imports',
    'efficient_conv_bn_eval',
    'find_unused_parameters',
    'model_wrapper_cfg',
    'runner_type',
    'safeguards',
    'sync_bn',
    'tta_model',
    'tta_pipeline',
}
# Those with a single value.
# fmt: off
_SINGLE = {
    'work_dir', 'load_from', 'resume', 'launcher', 'log_level', 'default_scope', 'experiment_name',
    'runner_type',
}
# fmt: on
# Those in which a list may stand for a dict.
_ONE_OR_SEVERAL = {'model', 'param_scheduler', 'test_evaluator', 'tta_model', 'val_evaluator'}

_NESTED = re.compile(r'dict\(|[\[({]')
_DICT = re.compile(r'\bdict\(|\{[^}]*:|\}$')  # '{}_x.pth' is text

_REPLACES = dict(_delete_=True)  # MMEngine otherwise merges a dict into the value before it

READ_KEYS = (set(inspect.signature(Runner).parameters) | _TOP_LEVEL) - {'cfg'}


def read_config(
    path: Path | str, options: dict | None = None, data_root: Path | str | None = None
) -> Config:
    """Read a config file, a project's or one of this package's by name; apply ``--cfg-options``.

    Args:
        path: A file, the folder of a project, or a name.
        options: Dotted keys and values.
        data_root: The folder to read all data from, in place of the config's ``data_root``.

    Returns:
        The complete config, with its bases.

    Raises:
        UserError: if there is no such file, if it cannot be executed, if it needs a package that
            is not installed, if nothing reads an option's first key, or if the config does not
            have exactly one ``data_root`` to replace.
    """
    file = find_config(str(path))
    try:
        config = config_from_file(file)
    except Exception as error:  # a config is a program: it may raise anything
        raise UserError(f'{file} cannot be read: {_explain(error)}') from error
    _rename_moved_classes(config)
    _shorten_suppression(config)
    if data_root is not None:
        use_data_root(config, data_root)
    apply_options(config, options or {})
    return config


def _shorten_suppression(config: Config) -> None:
    """Shorten 'mmcv.ops.nms', as MMEngine stores a function: mmcv evaluates it as an expression."""
    if "type='mmcv.ops." in config.text:
        for path, settings in dicts_within(dict(config.items()), ''):
            if path.endswith('.nms') and isinstance(settings.get('type'), str):
                settings['type'] = short_name(settings)


def _rename_moved_classes(config: Config) -> None:
    """Update the paths of our classes in projects and work dirs of earlier versions."""
    # Only there: looking into a config in Python's new style imports what it names.
    if with_moved_classes(config.text) != config.text:
        for _, settings in dicts_within(dict(config.items()), ''):
            if isinstance(settings.get('type'), str):
                settings['type'] = with_moved_classes(settings['type'])


def parse_options(words: Sequence[str]) -> dict:
    """Read the words of ``--cfg-options``, such as 'train_cfg.max_epochs=3', as MMEngine does.

    A value may also be a list or a dict as Python or JSON writes it, with others inside:
    "custom_hooks=[dict(type='EMAHook')]".

    Raises:
        UserError: if a word is not KEY=VALUE, or a list or a dict cannot be read.
    """
    options = {}
    for word in words:
        try:
            key, value = word.split('=', maxsplit=1)
            options[key] = _value_from(value)
        except Exception as error:  # of parsers, which may even raise RecursionError
            raise UserError(
                f'`options` {word}: expected KEY=VALUE, with a number, a word, or a quoted list or '
                f"dict such as '[1,2]' or \"dict(type='SGD')\" ({one_line(error)})"
            ) from error
    return options


def _value_from(text: str) -> object:
    """The value of an option; raises any exception if it cannot be read."""
    if _NESTED.match(text):
        with suppress(ValueError):
            return json.loads(text)
        try:
            value = literal(ast.parse(text, mode='eval').body)
        except (SyntaxError, ValueError):  # perhaps a list of words, which MMEngine reads
            if _DICT.search(text):
                raise
        else:
            # For MMEngine, (1) is a tuple.
            if isinstance(value, (list, tuple, dict)):
                return value
    if any(text.count(left) != text.count(right) for left, right in ('()', '[]')):
        raise ValueError('brackets do not match')
    namespace = SimpleNamespace(options={})
    DictAction(['--cfg-options'], 'options')(None, namespace, [f'value={text}'])
    value = namespace.options['value']
    return text.strip('\'"') if isinstance(value, str) else value  # MMEngine removes spaces


def apply_options(config: Config, options: dict) -> None:
    """Merge ``--cfg-options``, dotted keys and values, into a config.

    A key inside the ``arch`` of one of our networks changes one setting of the named variant.

    Raises:
        UserError: if nothing reads the first part of a key, if a path leads through a value without
            keys, or if a single value would replace a dict.
    """
    for key, value in options.items():
        _spell_out_arch(config, key, value)
        if why := _why_refused(config, key, value):
            raise UserError(f'`options` {key}: {why}')
        if isinstance(value, Mapping) and not isinstance(_value_at(config, key, {}), Mapping):
            options = options | {key: value | _REPLACES}
    try:
        config.merge_from_dict(options)
    except Exception as error:  # MMEngine checks none of the values that it merges
        reason = printable(in_quotes(str(error.args[0] if error.args else error)))
        raise UserError(f'`options` {" ".join(options)}: {reason}') from error


def _spell_out_arch(config: Config, key: str, value: object) -> None:
    """Replace the name of a network's variant by its settings if an option changes one of them."""
    before, found, after = key.partition('.arch')
    owner = _value_at(config, before)
    changes_one = after.startswith('.') or (not after and isinstance(value, Mapping))
    if not found or not changes_one or not isinstance(owner, Mapping):
        return
    arch, scope = owner.get('arch'), scope_of(config)
    for cls in classes_named(owner.get('type'), scope):
        archs = getattr(cls, 'archs', None)
        if isinstance(archs, Mapping) and isinstance(arch, str) and arch in full_names(archs):
            config.merge_from_dict({f'{before}.arch': read_arch(arch, archs) | _REPLACES})


def _why_refused(config: Config, key: str, value: object) -> str:
    """Why an option would have no effect, or the wrong one; empty if it can be merged."""
    first, _, rest = key.partition('.')
    if key in ('epochs', 'max_epochs'):
        return f'train with `epochs={value}`, which changes the whole schedule with it'
    if first not in READ_KEYS:
        return _why_unread(config, key)
    if first in _SINGLE and rest:
        return f'{first} is a single value, without keys'
    before = _value_at(config, key)
    has_no_keys = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    has_no_keys |= isinstance(value, (list, tuple)) and first not in _ONE_OR_SEVERAL
    if isinstance(before, Mapping) and has_no_keys:
        return f'{value!r} would replace its keys: write {key}.{next(iter(before), "KEY")}=...'
    return ''


def _value_at(config: Config, key: str, default: object = None) -> object:
    """The value at a path, or the default without one."""
    value: object = config.to_dict()
    for step in key.split('.'):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, (list, tuple)) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return default
    return value


def _why_unread(config: Config, key: str) -> str:
    """Why nothing reads an option, and the settings that were probably meant."""
    first = key.partition('.')[0]
    settings = flat_settings({name: config[name] for name in config if name in READ_KEYS})
    if first in config:
        value = config[first]
        equal = [] if value is None or isinstance(value, bool) else [repr(value)]
        used = first_few(path for path, shown in settings.items() if shown in equal)
        return (
            f'{first} is a variable of the config file, and changing it now has no effect: set '
            f'what it is used for{f"; these have its value: {used}" if used else ""}'
        )
    if deeper := [path for path in settings if path.endswith(f'.{key}')]:
        return f'unknown key {first!r}: did you mean {" or ".join(deeper[:3])}?'
    return unknown_name('key', first, sorted(READ_KEYS))


def require_keys(config: Config, keys: Iterable[str]) -> None:
    """Raise a UserError if a key that a command needs is missing from a config, or None.

    Also if it is not a config, but the path of one.
    """
    if not isinstance(config, Config):
        raise UserError(f'{config!r} is not a config: read its file with ptnt_mm.api.read_config')
    missing = [key for key in keys if config.get(key) is None]
    if missing:
        name = config.filename or 'the config'
        raise UserError(f'{name} lacks {", ".join(missing)}: use a complete config')


def _explain(error: BaseException) -> str:
    """Explain in one line why a config cannot be executed, and what to install."""
    if isinstance(error, ImportError) and error.__cause__:
        # For custom_imports, MMEngine raises twice more, with sys.path in place of the reason.
        error = error.__cause__.__context__ or error
    if wrong := explain(error, Kind.SYNTAX):
        return str(wrong)
    explained = f'{one_line(error, named=True)}{place_in_own_code(error)}'
    if absent := explain(error, Kind.PACKAGE):
        explained += f'. {absent.advice}; a module of your own must be on PYTHONPATH'
    return explained
