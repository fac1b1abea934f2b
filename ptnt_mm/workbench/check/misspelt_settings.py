"""Keys, types and values of a config that nothing reads: most are misspelt.

Every dict with a ``type`` is compared with the signature of its class, and every name of a class
with the registries. Dicts without a class, such as a ``test_cfg``, are compared with the keys that
the hosts read in them.
"""

import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping

from mmengine.dist import init_dist
from mmengine.optim import OptimWrapper
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop, TestLoop, ValLoop
from mmengine.runner.utils import set_random_seed
from mmengine.utils import import_modules_from_strings
from mmengine.utils.dl_utils import set_multi_processing
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader

from ptnt_mm.models.optimizer import (
    UNMATCHED_KEY,
    CheckedOptimWrapperConstructor,
    unmatched_custom_keys,
)
from ptnt_mm.utils.findings import Finding, error, ok
from ptnt_mm.utils.text import misspellings, suggest, unknown_name, with_another_letter
from ptnt_mm.workbench.config.hosts import HOSTS
from ptnt_mm.workbench.config.read import READ_KEYS
from ptnt_mm.workbench.config.registered import arguments_of, classes_named, registered_names
from ptnt_mm.workbench.config.settings import as_list, type_name
from ptnt_mm.workbench.config.view import ConfigView

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
"""The classes or functions for settings without a ``type``."""

# Settings whose values are names that users choose.
_OWN_NAMES = ('metainfo', 'experiment_name', 'work_dir', 'name', 'loss_name', 'prefix', 'arch')

_SHORTEST = 4  # letters; shorter words are too similar

_FOREIGN = ('Albu', 'Detectron2Wrapper')  # they pass their settings to another library

_PLAIN = (bool, int, float, complex, str, list, tuple, types.NoneType)
_NAMED = {kind.__name__: kind for kind in _PLAIN} | {'None': types.NoneType}

# Keys of dicts without a class: those of a model's train_cfg and test_cfg, of data sets, of
# optimizers, and of hooks.
_WITHOUT_SIGNATURE = frozenset((
    'allowed_border', 'assigner', 'crop_size', 'filter_thr', 'importance_sample_ratio', 'iou_thr',
    'mask_size', 'mask_thr', 'mask_thr_binary', 'max_per_img', 'min_bbox_size', 'mode',
    'neg_pos_ratio', 'nms_post', 'nms_pre', 'num_points', 'oversample_ratio', 'pos_weight', 'rcnn',
    'rpn_proposal', 'sampler', 'score_thr', 'size', 'size_divisor', 'stride',
    'subdivision_num_points', 'subdivision_steps',
    'classes', 'palette', 'thing_classes', 'stuff_classes', 'filter_empty_gt', 'min_size',
    'img_path', 'seg_map_path', 'backend', 'iou_threshold', 'max_norm', 'class_agnostic',
    'bias_decay_mult', 'bias_lr_mult', 'bypass_duplicate', 'custom_keys', 'decay_mult',
    'dcn_offset_lr_mult', 'dwconv_decay_mult', 'flat_decay_mult', 'lr_mult', 'norm_decay_mult',
    'base_batch_size', 'enable', 'cudnn_benchmark', 'mp_cfg', 'dist_cfg', 'mp_start_method',
    'opencv_num_threads',
    'checkpoint', 'logger', 'param_scheduler', 'runtime_info', 'sampler_seed', 'timer',
    'visualization',
))  # fmt: skip

# Keys that MMEngine and the hosts remove from settings before they call a class.
_TAKEN_OUT = {
    'bg_cls_weight', 'by_epoch', 'class_agnostic', 'constructor', 'convert_to_iter_based',
    'fallback_on_stride', 'num_batch_per_epoch', 'paramwise_cfg', 'priority', 'requires_grad',
    'scale_factor', 'split_thr',
}  # fmt: skip

_MEANT = ': did you mean {!r}?'


def check_spelling(view: ConfigView) -> Iterator[Finding]:
    """Find keys, types and values that nothing reads."""
    found, config = [], view.config
    for key in config.keys() - READ_KEYS:
        # Only keys that are similar to a known one: others are variables of the config.
        meant = _meant(key, READ_KEYS)
        if meant and (meant not in config or isinstance(config[key], (Mapping, list))):
            what = f'nothing reads it: did you mean {meant!r}?'
            found.append(error(key, what, f'write {meant}'))
    for key in sorted((READ_KEYS & config.keys()) - {'safeguards'}):
        # One finding for each place.
        once: dict[str, Finding] = {}
        for finding in _check_value(config[key], key, view.scope):
            once.setdefault(finding.where, finding)
        found += once.values()
    yield from found or [ok('config', 'every key and type is known')]


def check_safeguards(view: ConfigView, known: Collection[str]) -> Iterator[Finding]:
    """Find names in ``safeguards`` that are not known, and values other than None."""
    stated = view.config.get('safeguards') or {}
    if not isinstance(stated, Mapping):
        yield error('safeguards', f'is {stated!r}, expected dict(NAME=None)')
        return
    for name, value in stated.items():
        if name not in known:
            yield error(f'safeguards.{name}', unknown_name('safeguard', name, known))
        elif value is not None:
            yield error(f'safeguards.{name}', f'is {value!r}, expected None, which leaves it out')


def check_parameter_names(view: ConfigView, model: nn.Module) -> Iterator[Finding]:
    """Compare the custom keys of an optimizer with the names of a model's parameters."""
    where = 'optim_wrapper.paramwise_cfg.custom_keys'
    constructors = classes_named(view.optim_wrapper.get('constructor'), view.scope)
    is_ours = any(
        isinstance(cls, type) and issubclass(cls, CheckedOptimWrapperConstructor)
        for cls in constructors
    )
    parts = {part for name, _ in model.named_parameters() for part in name.split('.')}
    for key in unmatched_custom_keys(view.paramwise, model):
        meant = [_meant(part, parts) for part in key.split('.')]
        if any(meant):
            suggestion = next(filter(None, meant))
            yield error(f'{where}.{key}', f'matches no parameter: did you mean {suggestion!r}?')
        elif is_ours:  # it refuses keys that MMEngine's constructor ignores
            yield error(f'{where}.{key}', UNMATCHED_KEY, 'remove it')


def _check_value(value: object, path: str, scope: str) -> Iterator[Finding]:
    """Find misspelt names in a value and everything inside it."""
    if isinstance(value, Mapping):
        classes = _IMPLIED.get(path, ())
        if value.get('type'):
            classes = classes_named(value['type'], value.get('_scope_', scope))
        if 'type' in value and not classes:
            yield from _unknown_type(value['type'], f'{path}.type', scope)
        # Keys of custom_keys are parts of parameter names.
        if not path.endswith('.custom_keys'):
            yield from _check_arguments(value, path, classes)
        if type_name(value) in _FOREIGN:
            return
        for key, inner in value.items():
            if key not in ('type', '_scope_'):
                yield from _check_value(inner, f'{path}.{key}', scope)
    elif path.rpartition('.')[2] in _OWN_NAMES or '.metainfo.' in path:
        return
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from _check_value(inner, f'{path}[{i}]', scope)
    elif path.endswith('.ema_type') and not classes_named(value, scope):
        yield from _unknown_type(value, path, scope)
    elif isinstance(value, str) and value[:1].isupper() and value.isidentifier():
        # Such as the constructor of an optimizer.
        meant = _meant(value, registered_names())
        if meant is not None:
            yield error(path, f'is {value!r}, which is not registered: did you mean {meant!r}?')


def _unknown_type(kind: object, path: str, default_scope: str) -> Iterator[Finding]:
    scope, _, name = str(kind).rpartition('.')
    # In a model, types may also be operators or words with a local meaning. Building it shows the
    # others, and missing libraries.
    # Only now, because looking up the type made the host register its classes.
    meant = _meant(name, registered_names())
    is_class = name[:1].isupper() and not path.startswith('model')
    if scope in ('', 'mmengine', *HOSTS, 'ptnt_mm') and (meant or is_class):
        suggestion = suggest(name, registered_names(scope=default_scope), _MEANT)
        what = f'unknown type {kind!r}{suggestion}'
        advice = 'correct it, or name the package that has it in custom_imports'
        yield error(path, what, advice)


def _check_arguments(
    settings: Mapping, path: str, classes: tuple[Callable, ...]
) -> Iterator[Finding]:
    """Compare the keys of settings with the signatures of their classes."""
    taken = [arguments_of(cls) for cls in classes]
    names = {name for signature in taken for name in signature.parameters}
    is_complete = bool(taken) and all(signature.is_complete for signature in taken)
    for key, value in settings.items():
        where = f'{path}.{key}'
        if key in names:
            parameters = [
                signature.parameters[key] for signature in taken if key in signature.parameters
            ]
            yield from _wrong_value(where, value, parameters)
        elif key in ('type', '_scope_', *_TAKEN_OUT) or not str(key).isidentifier():
            continue
        elif taken and _near(key) & (names | _TAKEN_OUT):
            yield _no_argument(where, classes, names | _TAKEN_OUT)
        elif is_complete:
            yield _no_argument(where, classes, names)
        elif not taken and (meant := _meant(key, _WITHOUT_SIGNATURE | _TAKEN_OUT)):
            yield error(where, f'nothing reads it: did you mean {meant!r}?')


def _no_argument(where: str, classes: tuple[Callable, ...], names: set[str]) -> Finding:
    meant = suggest(where.rpartition('.')[2], names, _MEANT)
    return error(where, f'is not an argument of {classes[0].__name__}{meant}')


def _meant(name: str, known: set[str] | frozenset[str]) -> str | None:
    """The known word that was probably meant by an unknown one."""
    if name in known:
        return None
    # Prefer the longer word: clases means classes, and not cases.
    words = sorted(word for word in _near(name) & known if len(word) >= _SHORTEST)
    return max(words, key=len, default=None)


def _near(name: str) -> set[str]:
    """All words that a name may stand for; values have fewer, see :func:`_wrong_value`."""
    return misspellings(name) | with_another_letter(name)


def _wrong_value(
    where: str, value: object, parameters: list[inspect.Parameter]
) -> Iterator[Finding]:
    """Report text where a number or a list is expected, or text similar to the default."""
    kinds = [_plain_types(parameter) for parameter in parameters]
    allowed = set().union(*kinds)
    allowed |= {type(parameter.default) for parameter in parameters}
    if isinstance(value, str) and all(kinds) and str not in allowed:
        names = ' or '.join(sorted(kind.__name__ for kind in allowed - {types.NoneType}))
        yield error(where, f'is {value!r}, expected {names}')
    defaults = {default for parameter in parameters for default in _texts(parameter.default)}
    if not defaults or where.rpartition('.')[2] in _OWN_NAMES:
        return
    for text in _texts(value):
        if meant := min(misspellings(text) & defaults, default=None):
            yield error(where, f'is {text!r}: did you mean {meant!r}, the default?')


def _texts(value: object) -> list[str]:
    return [value for value in as_list(value) if isinstance(value, str) and value]


def _plain_types(parameter: inspect.Parameter) -> set[type]:
    """The plain types that a parameter accepts; empty if it accepts others."""
    if parameter.annotation is not parameter.empty:
        return _leaves(parameter.annotation)
    return {int, float} if type(parameter.default) in (int, float) else set()


def _leaves(annotation: object) -> set[type]:
    origin = typing.get_origin(annotation)
    if isinstance(annotation, str):
        # Annotations are not evaluated: plain ones suffice.
        leaves = [{_NAMED.get(name.strip())} - {None} for name in annotation.split('|')]
    elif origin in (typing.Union, types.UnionType):
        leaves = [_leaves(part) for part in typing.get_args(annotation)]
    else:
        leaves = [{origin or annotation} & set(_PLAIN)]
    return set().union(*leaves) if all(leaves) else set()
