"""Keys, types and values of a config that nothing reads: most are misspelt.

Every dict with a ``type`` is compared with the signature of its class. Where a signature does not
tell, as for a ``test_cfg`` or for ``**kwargs``, the sources do: a word is misspelt if the files of
the classes of its section do not hold it, but hold one that is a single slip away.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import NoneType

from mmengine.config import Config
from mmengine.dist import init_dist
from mmengine.fileio import FileClient
from mmengine.optim import DefaultOptimWrapperConstructor, OptimWrapper
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop, Runner, TestLoop, ValLoop
from mmengine.runner.utils import set_random_seed
from mmengine.utils import import_modules_from_strings
from mmengine.utils.dl_utils import set_multi_processing
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader

from ptnt_mm.engine.config import READ_KEYS, kind_of, within
from ptnt_mm.engine.constructors import (
    arguments,
    classes_named,
    plain_types,
    registered_names,
    words,
)
from ptnt_mm.engine.hosts import HOSTS, scope_of
from ptnt_mm.engine.optimizer import IDLE, CheckedOptimWrapperConstructor, idle_custom_keys
from ptnt_mm.utils.findings import Finding, error, sound
from ptnt_mm.utils.text import slips, suggest

_IMPLIED: dict[str, tuple[Callable, ...]] = {
    'train_dataloader': (DataLoader,),
    'val_dataloader': (DataLoader,),
    'test_dataloader': (DataLoader,),
    'train_cfg': (EpochBasedTrainLoop, IterBasedTrainLoop),
    'val_cfg': (ValLoop,),
    'test_cfg': (TestLoop,),
    'optim_wrapper': (OptimWrapper,),
    'optim_wrapper.clip_grad': (clip_grad_norm_,),
    'randomness': (set_random_seed,),
    'custom_imports': (import_modules_from_strings,),
    'env_cfg.mp_cfg': (set_multi_processing,),
    'env_cfg.dist_cfg': (init_dist,),
}
"""What gets the settings that have no ``type``."""

# Settings whose values are names that users choose.
_OWN_NAMES = ('metainfo', 'experiment_name', 'work_dir', 'name', 'loss_name', 'prefix')

_SHORTEST = 4  # letters; shorter words are too much alike

_FOREIGN = ('Albu', 'Detectron2Wrapper')  # they hand their settings on to another library

_MEANT = ': did you mean {!r}?'


def check_spelling(config: Config) -> Iterator[Finding]:
    """Look for keys, types and values that nothing reads."""
    found = []
    for key in config.keys() - READ_KEYS:
        # Only keys that are nearly one that is read: others are variables of the config's own.
        meant = _meant(key, READ_KEYS)
        if meant and (meant not in config or isinstance(config[key], (Mapping, list))):
            what = f'nothing reads it: did you mean {meant!r}?'
            found.append(error(key, what, f'write {meant}'))
    for key in READ_KEYS & config.keys():
        # One finding for each place.
        once: dict[str, Finding] = {}
        for finding in _Section(config, key).look(config[key], key):
            once.setdefault(finding.where, finding)
        found += once.values()
    yield from found or [sound('config', 'every key and type is known')]


def check_parameter_names(config: Config, model: nn.Module) -> Iterator[Finding]:
    """Compare the custom keys of an optimizer with the names of a model's parameters."""
    where = 'optim_wrapper.paramwise_cfg.custom_keys'
    constructors = classes_named(config.optim_wrapper.get('constructor'), scope_of(config))
    is_ours = any(
        isinstance(cls, type) and issubclass(cls, CheckedOptimWrapperConstructor)
        for cls in constructors
    )
    parts = {part for name, _ in model.named_parameters() for part in name.split('.')}
    for key in idle_custom_keys(config.optim_wrapper.get('paramwise_cfg') or {}, model):
        meant = [_meant(part, parts) for part in key.split('.')]
        if any(meant):
            near = next(filter(None, meant))
            yield error(f'{where}.{key}', f'is part of no parameter: did you mean {near!r}?')
        elif is_ours:  # it refuses what MMEngine's own passes over
            yield error(f'{where}.{key}', IDLE, 'take it out')


class _Section:
    """What a config has under one of its top-level keys."""

    def __init__(self, config: Config, key: str):
        self.scope = scope_of(config)
        readers = [Runner, DefaultOptimWrapperConstructor, FileClient]
        for path, settings in within(config[key], key):
            readers += self._classes(path, settings)
        # Heads look up mmcv's operators themselves, by their names.
        operators = set(dir(sys.modules.get('mmcv.ops')))
        self.words = words(frozenset(readers)) | operators
        self.known = self.words | registered_names()

    def _classes(self, path: str, settings: Mapping) -> tuple[Callable, ...]:
        if settings.get('type'):
            return classes_named(settings['type'], settings.get('_scope_', self.scope))
        return _IMPLIED.get(path, ())

    def look(self, value: object, path: str) -> Iterator[Finding]:
        """What is misspelt in a value and all that is in it."""
        if isinstance(value, Mapping):
            classes = self._classes(path, value)
            if 'type' in value and not classes:
                yield from self._unknown_type(value['type'], path)
            # Keys of custom_keys are parts of parameter names.
            if not path.endswith('.custom_keys'):
                yield from self._arguments(value, path, classes)
            if kind_of(value) in _FOREIGN:
                return
            for key, inner in value.items():
                if key not in ('type', '_scope_'):
                    yield from self.look(inner, f'{path}.{key}')
        elif path.rpartition('.')[2] in _OWN_NAMES or '.metainfo.' in path:
            return
        elif isinstance(value, (list, tuple)):
            # Several unknown words are the user's own names, such as class names.
            unknown = [one for one in value if isinstance(one, str) and one not in self.known]
            for i, inner in enumerate(value):
                if inner not in unknown or len(unknown) == 1:
                    yield from self.look(inner, f'{path}[{i}]')
        elif isinstance(value, str) and value.isidentifier():
            meant = _meant(value, self.known)
            if meant:
                yield error(path, f'is {value!r}, which nothing knows: did you mean {meant!r}?')

    def _unknown_type(self, kind: object, path: str) -> Iterator[Finding]:
        scope, _, name = str(kind).rpartition('.')
        # Some types are not classes: only the class above knows them. If the library of a scope is
        # missing, another check reports that the model cannot be built.
        if name not in self.words and scope in ('', 'mmengine', *HOSTS, 'ptnt_mm'):
            what = f'unknown type {kind!r}{suggest(name, registered_names(), _MEANT)}'
            advice = 'correct it, or name the package that has it in custom_imports'
            yield error(f'{path}.type', what, advice)

    def _arguments(
        self, settings: Mapping, path: str, classes: tuple[Callable, ...]
    ) -> Iterator[Finding]:
        taken = [arguments(cls) for cls in classes]
        names = {name for one in taken for name in one.parameters}
        is_complete = bool(taken) and all(one.is_complete for one in taken)
        for key, value in settings.items():
            where = f'{path}.{key}'
            if key in names:
                parameters = [one.parameters[key] for one in taken if key in one.parameters]
                yield from _wrong_value(where, value, parameters)
            elif key in ('type', '_scope_') or not str(key).isidentifier():
                continue
            elif meant := slips(key) & names - settings.keys():
                yield _no_argument(where, classes, meant)
            elif key in self.words:
                # Some class that the settings pass through reads it.
                continue
            elif is_complete:
                yield _no_argument(where, classes, names)
            elif meant := _meant(key, self.words):
                yield error(where, f'nothing reads it: did you mean {meant!r}?')


def _no_argument(where: str, classes: tuple[Callable, ...], names: set[str]) -> Finding:
    meant = suggest(where.rpartition('.')[2], names, _MEANT)
    return error(where, f'is not an argument of {classes[0].__name__}{meant}')


def _meant(name: str, known: set[str] | frozenset[str]) -> str | None:
    """The known word that somebody has probably meant by an unknown one."""
    if name in known:
        return None
    # Prefer the longer word: clases means classes, and not cases.
    near = sorted(word for word in slips(name) & known if len(word) >= _SHORTEST)
    return max(near, key=len, default=None)


def _wrong_value(
    where: str, value: object, parameters: list[inspect.Parameter | None]
) -> Iterator[Finding]:
    """A text where a number or a list is expected, or what is nearly the default."""
    kinds = [plain_types(parameter) for parameter in parameters]
    allowed = set().union(*kinds)
    if isinstance(value, str) and all(kinds) and str not in allowed:
        names = ' or '.join(sorted(kind.__name__ for kind in allowed - {NoneType}))
        yield error(where, f'is {value!r}, expected {names}')
    defaults = {one for parameter in parameters if parameter for one in _texts(parameter.default)}
    for text in _texts(value):
        if where.rpartition('.')[2] not in _OWN_NAMES and slips(text) & defaults:
            meant = min(slips(text) & defaults)
            yield error(where, f'is {text!r}: did you mean {meant!r}, the default?')


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, (list, tuple)) else [value]
    return [one for one in values if isinstance(one, str)]
