"""Rules for single settings: their paths, a predicate for wrong values, and the message.

A new rule is a row of ``RULES``, at the end, and perhaps a predicate. It needs only the config. No
rule fires on a config that mmdet, mmseg or mmpretrain publish, unless that config is wrong. The
docstring of a predicate, up to a semicolon, says in ``docs/check_rules.md`` when a value is wrong.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from logging import getLevelNamesMapping
from math import inf

from ptnt_mm.utils.findings import Finding, Severity
from ptnt_mm.utils.numbers import is_number, is_pair
from ptnt_mm.workbench.config.settings import (
    as_list,
    dicts_within,
    is_warm_up,
    short_name,
    type_name,
)
from ptnt_mm.workbench.config.view import ConfigView


@dataclass(frozen=True)
class Setting:
    """A value in a config.

    Attributes:
        path: Such as 'model.neck[0].in_channels'.
        value: Whatever is there.
        beside: The dict that contains it or its list.
        view: The complete config.
    """

    path: str
    value: object
    beside: Mapping
    view: ConfigView


Predicate = Callable[[Setting], object]
"""Whether a setting is wrong. A returned string replaces ``{found}`` in the texts."""


@dataclass(frozen=True, eq=False)
class Rule:
    """A kind of setting that can be wrong.

    Attributes:
        paths: Patterns of paths, in which an asterisk stands for any text.
        is_wrong: Whether a value is wrong.
        severity: How bad that is.
        what: The message; ``{value}`` and ``{found}`` are filled in.
        advice: What to do; they are filled in here, too.
        scopes: The hosts that it applies to; empty for all.
        kinds: The classes of the dicts that have the setting; empty for all.
    """

    paths: str | tuple[str, ...]
    is_wrong: Predicate
    severity: Severity
    what: str
    advice: str = ''
    scopes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    def is_about(self, path: str) -> bool:
        """Whether one of the patterns fits; brackets are literal."""
        patterns = (self.paths,) if isinstance(self.paths, str) else self.paths
        return any(fnmatchcase(path, pattern.replace('[', '[[]')) for pattern in patterns)

    def check(self, setting: Setting) -> Iterator[Finding]:
        """The finding for a setting that the rule is about, if its value is wrong."""
        if self.scopes and setting.view.scope not in self.scopes:
            return
        if self.kinds and type_name(setting.beside) not in self.kinds:
            return
        if found := self.is_wrong(setting):
            values = dict(value=setting.value, found=found)
            texts = (text.format(**values) for text in (self.what, self.advice))
            yield Finding(self.severity, setting.path, *texts)


def check_rules(view: ConfigView, rules: Iterable[Rule], keys: Iterable[str]) -> Iterator[Finding]:
    """Check all settings in some top-level keys of a config."""
    rules = tuple(rules)
    for key in keys:
        for setting in _settings(view.config.get(key), key, view.config, view):
            for rule in _about(setting.path, rules):
                yield from rule.check(setting)


@lru_cache(maxsize=10_000)
def _about(path: str, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules for a path. Most paths occur in many configs."""
    return tuple(rule for rule in rules if rule.is_about(path))


def _settings(value: object, path: str, beside: Mapping, view: ConfigView) -> Iterator[Setting]:
    """Yield a value and everything inside it."""
    yield Setting(path, value, beside, view)
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _settings(inner, f'{path}.{key}', value, view)
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from _settings(inner, f'{path}[{i}]', beside, view)


_AUGMENTING = (
    'AutoAugment', 'CachedMixUp', 'CachedMosaic', 'ColorJitter', 'CopyPaste', 'CutOut', 'Expand',
    'GeomTransform', 'MinIoURandomCrop', 'MixUp', 'Mosaic', 'PhotoMetricDistortion', 'RandAugment',
    'TrivialAugmentWide', 'YOLOXHSVRandomAug',
)  # fmt: skip
_PARTS = ('dataloader', 'cfg', 'evaluator')  # of an evaluation, in a config
EARLY = 0.8  # share of training, after which schedules may be over
SMALL = 32  # pixels: CIFAR's images are as large


def described(when: str, predicate: Predicate) -> Predicate:
    """A short predicate with its docstring, which the table in the docs shows up to a semicolon."""
    predicate.__doc__ = when
    return predicate


def outside(least: float = -inf, most: float = inf, but: tuple = ()) -> Predicate:
    """A number that is not in [least, most], with exceptions."""
    limits = [_below(least)] if least > -inf else []
    limits += [_above(most)] if most < inf else []
    exceptions = ''.join(f', except {value}' for value in but)
    return described(
        ', or '.join(limits) + exceptions,
        lambda s: is_number(s.value) and not least <= s.value <= most and s.value not in but,
    )


def _below(least: float) -> str:
    """In words: 1e-9 stands for all numbers above 0."""
    return f'{round(least)} or less' if 0 < least - round(least) < 0.01 else f'below {least:g}'


def _above(most: float) -> str:
    """In words: 0.999 stands for all numbers below 1."""
    return f'{round(most)} or more' if 0 < round(most) - most < 0.01 else f'above {most:g}'


def equal_to(expected: object) -> Predicate:
    """A value, such as None, True or 0; True is not 1."""
    return described(
        f'{expected}',
        lambda s: (
            s.value is expected
            or (is_number(s.value) and is_number(expected) and s.value == expected)
        ),
    )


def not_a_count(setting: Setting) -> bool:
    """A number, or a boolean, that is not an integer above 0; infinity is one.

    Text is left to the check of spelling.
    """
    value = setting.value
    return isinstance(value, (int, float)) and (value < 1 or value % 1 > 0)


def without_class(setting: Setting) -> str:
    """A text, a number or a dict without a type, in place of a class; returns the first."""
    is_schedule = setting.path == 'param_scheduler'  # of several optimizers, by their names
    items = setting.view.schedulers if is_schedule else as_list(setting.value)
    named = {'type', 'metrics'}  # an evaluator may have only metrics
    wrong = (
        repr(item)
        for item in items
        if isinstance(item, (str, int, float))
        or (isinstance(item, Mapping) and not named & {*item})
    )
    return next(wrong, '')


def _after_the_end(setting: Setting) -> str | bool:
    """A number in the loop's unit that training never reaches."""
    length = setting.view.length
    is_after = is_number(setting.value) and length.end < setting.value < inf
    return is_after and f'training ends after {length.text}'


def after_the_end(setting: Setting) -> str | bool:
    """A number of a schedule or hook, in the unit of the loop, after the end of training."""
    by_epoch = setting.beside.get('by_epoch', True)
    return by_epoch == setting.view.length.by_epoch and _after_the_end(setting)


def never_due(setting: Setting) -> str | bool:
    """A number of a loop, after the end of training; the first number after it is allowed."""
    return setting.value != setting.view.length.end + 1 and _after_the_end(setting)


def counts_epochs_of_iterations(setting: Setting) -> bool:
    """A schedule or hook by epochs, explicitly or by default, in a loop by iterations."""
    has_unit = isinstance(setting.value, Mapping) and 'type' in setting.value
    by_epoch = has_unit and setting.value.get('by_epoch', True)
    known = setting.view.length.end < inf
    return bool(by_epoch) and known and not setting.view.length.by_epoch


def in_epochs_by_iteration(setting: Setting) -> str | bool:
    """A schedule by iterations whose ends look like epochs; warm-ups may be short."""
    length, schedule = setting.view.length, setting.value
    if not isinstance(schedule, Mapping) or not length.by_epoch or schedule.get('by_epoch', True):
        return False
    ends = [schedule.get(key) for key in ('end', 'T_max', 'total_iters')]
    ends += schedule.get('milestones') or ()
    late = [end for end in ends if is_number(end) and end <= length.end]
    return (
        not is_warm_up(schedule)
        and bool(late)
        and f'{max(late)} iterations; training has {length.text}'
    )


def ends_early(setting: Setting) -> str | bool:
    """The last schedule in the unit of the loop is over before four fifths of training."""
    length = setting.view.length
    last = early_end(setting.view, length.by_epoch, length.end)
    return bool(last) and f'{last:g} of {length.text}'


def early_end(view: ConfigView, by_epoch: bool, end: float) -> float:
    """When the last of the schedules in a unit is over, if long before ``end``; otherwise 0."""
    found = [s for s in view.schedulers if isinstance(s, Mapping)]
    ends = [last_change(s) for s in found if s.get('by_epoch', True) == by_epoch]
    last = max(ends, default=0)
    return last if last < EARLY * end < inf else 0


def last_change(schedule: Mapping) -> float:
    """When a schedule last changes a rate, in its unit; 0 for a warm-up, infinite if never."""
    begin, kind = schedule.get('begin', 0), type_name(schedule)
    if not begin and is_warm_up(schedule):
        return 0
    lasts = schedule.get('T_max' if kind.startswith('CosineAnnealing') else 'total_iters')
    milestones = schedule.get('milestones')
    if isinstance(milestones, (list, tuple)) and milestones and is_number(milestones[-1]):
        lasts = 2 * milestones[-1]  # recipes often have their last step at two thirds
    ends = (schedule.get('end'), begin + lasts if is_number(lasts) else None)
    return min((end for end in ends if is_number(end)), default=inf)


def ends_before_it_begins(setting: Setting) -> bool:
    """The end of a schedule that does not come after its beginning."""
    begin = setting.beside.get('begin', 0)
    return is_number(setting.value) and is_number(begin) and setting.value <= begin


def without_workers(setting: Setting) -> bool:
    """A setting of the workers of a loader that has none."""
    return bool(setting.value) and setting.beside.get('num_workers', 0) == 0


def augments(setting: Setting) -> str | bool:
    """A transform that changes images at random; returns its name."""
    step = setting.value
    if not isinstance(step, Mapping) or step.get('test_mode'):
        return False
    kind = type_name(step)
    is_random = short_name(step).startswith('Random') or kind in _AUGMENTING
    return bool(step.get('prob', 1.0)) and is_random and kind


def windows_lack(setting: Setting) -> str | bool:
    """A mode of sliding windows without their size or stride; returns which is missing."""
    lacking = [key for key in ('crop_size', 'stride') if setting.beside.get(key) is None]
    return setting.value == 'slide' and ' and '.join(lacking)


def is_no_pair(setting: Setting) -> bool:
    """The size or stride of sliding windows that is not two numbers."""
    is_used = setting.beside.get('mode') == 'slide' and setting.value is not None
    return is_used and not is_pair(setting.value)


def leaves_gaps(setting: Setting) -> str | bool:
    """A stride that is longer than the window; returns the window."""
    crop = setting.beside.get('crop_size')
    if setting.beside.get('mode') != 'slide' or not (is_pair(crop) and is_pair(setting.value)):
        return False
    pairs = zip(setting.value, crop, strict=False)
    return any(step > side for step, side in pairs) and f'windows of {tuple(crop)}'


def is_small(setting: Setting) -> bool:
    """A size of images, as one number or two, that is too small."""
    sides = as_list(setting.value)
    # Fractions are shares of an image.
    return bool(sides) and all(is_number(n) and 1 <= n < SMALL for n in sides)


def below_neg_iou_thr(setting: Setting) -> str | bool:
    """A pos_iou_thr less than the neg_iou_thr in the same dict; returns that."""
    other = setting.beside.get('neg_iou_thr')
    is_below = is_number(setting.value) and is_number(other) and setting.value < other
    return is_below and f'{other}'


def not_ascending(setting: Setting) -> bool:
    """A list of numbers in a different order."""
    value = setting.value
    are_numbers = isinstance(value, (list, tuple)) and all(map(is_number, value))
    return are_numbers and list(value) != sorted(value)


def is_alone(setting: Setting) -> str | bool:
    """A part of an evaluation that is missing while others exist; returns the others."""
    split, _, part = setting.path.partition('_')
    if setting.value is not None or part not in _PARTS:
        return False
    others = [f'{split}_{other}' for other in _PARTS]
    return ' and '.join(o for o in others if setting.view.config.get(o) is not None)


def lacks_test_mode(setting: Setting) -> bool:
    """A data set that is evaluated without test_mode; wrappers have none."""
    data_set = setting.value
    is_one = isinstance(data_set, Mapping) and 'pipeline' in data_set and 'type' in data_set
    is_wrapper = is_one and ('dataset' in data_set or 'datasets' in data_set)
    return is_one and not is_wrapper and not data_set.get('test_mode')


def keeps_other_ratio(setting: Setting) -> str | bool:
    """A keep_ratio that no training transform has; returns theirs."""
    inside = dicts_within(setting.view.train.loader, '')
    kept = {bool(step['keep_ratio']) for _, step in inside if 'keep_ratio' in step}
    differs = isinstance(setting.value, bool) and kept == {not setting.value}
    return differs and f'{not setting.value}'


def saves_often(setting: Setting) -> bool:
    """A checkpoint hook that counts iterations as if they were epochs."""
    hook, length = setting.value, setting.view.length
    if not isinstance(hook, Mapping) or hook.get('by_epoch', True) or not length.by_epoch:
        return False
    return is_number(hook.get('interval')) and 0 < hook['interval'] <= length.end


def evaluates_often(setting: Setting) -> bool:
    """An interval of 10 iterations or fewer: epochs were probably meant."""
    length = setting.view.length
    often = is_number(setting.value) and 0 < setting.value <= 10
    return often and not length.by_epoch and 1000 < length.end < inf


ERROR, WARNING = Severity.ERROR, Severity.WARNING

ENDS_EARLY = (
    'ends after {found}: the rest trains at its last learning rate',
    'train with `epochs` instead of a changed train_cfg.max_epochs',
)
"""The message of :func:`ends_early`, and its advice."""

KEYS = (
    'model', 'tta_model', 'train_dataloader', 'val_dataloader', 'val_cfg', 'val_evaluator',
    'test_dataloader', 'test_cfg', 'test_evaluator', 'train_cfg', 'optim_wrapper',
    'param_scheduler', 'default_hooks', 'custom_hooks', 'log_level',
)  # fmt: skip
"""The keys of a config that rules are about."""

_TESTING = ('model.test_cfg.*', 'tta_model.tta_cfg.*', 'model.train_cfg.*')
_EVALUATING = ('val_dataloader.dataset*', 'test_dataloader.dataset*')
# Schedulers whose shape depends on the time from begin to end.
_SHAPED = ('CosineAnnealingLR', 'CosineAnnealingMomentum', 'CosineAnnealingParamScheduler',
           'LinearLR', 'PolyLR', 'QuadraticWarmupLR')  # fmt: skip


RULES = (
    # Post-processing
    Rule('model.test_cfg', equal_to(None), ERROR, 'is None: heads need it to select detections',
         'write test_cfg=dict(score_thr=0.05, max_per_img=100, ...)', scopes=('mmdet',)),
    Rule(tuple(f'{path}max_per_img' for path in _TESTING), outside(least=1, but=(-1,)), ERROR,
         'is {value}: nothing is ever detected', 'write the number to keep, such as 100'),
    Rule(tuple(f'{path}nms_pre' for path in _TESTING), outside(least=1, but=(-1,)), ERROR,
         'is {value}', 'write the number of candidates per level, such as 1000; -1 keeps all'),
    Rule('model.test_cfg.*score_thr', outside(0, 0.999999), ERROR,
         'is {value}: scores are between 0 and 1', 'write 0.05 for 5 %'),
    Rule('model.test_cfg.*mask_thr_binary', outside(most=0.999999), ERROR,
         'is {value}: probabilities are between 0 and 1, and no mask has a pixel', 'write 0.5'),
    Rule(tuple(f'{path}iou_{end}' for path in _TESTING for end in ('threshold', 'thr')),
         outside(0, 1), ERROR, 'is {value}: overlaps are between 0 and 1', 'write 0.5 for 50 %'),
    Rule('model.test_cfg.mode', described("not 'slide', 'whole' or 'slide_flip'",
         lambda s: s.value not in ('slide', 'whole', 'slide_flip')), ERROR,
         "is {value!r}, expected 'slide' or 'whole'", scopes=('mmseg',)),
    Rule('model.test_cfg.mode', windows_lack, ERROR, "is 'slide' without {found}",
         'write both in pixels: crop_size=(512, 512), stride=(341, 341)', scopes=('mmseg',)),
    Rule(('model.test_cfg.crop_size', 'model.test_cfg.stride'), is_no_pair, ERROR,
         'is {value}, expected (height, width) in pixels', scopes=('mmseg',)),
    Rule('model.test_cfg.stride', leaves_gaps, ERROR,
         'is {value}: {found} leave gaps between them', 'make it smaller than crop_size',
         scopes=('mmseg',)),
    # Assignment and losses
    Rule(('model.train_cfg.*pos_iou_thr', 'model.train_cfg.*neg_iou_thr',
          'model.train_cfg.*min_pos_iou'), outside(0, 1), ERROR,
         'is {value}: overlaps are between 0 and 1', 'write 0.5 for 50 %'),
    Rule('model.train_cfg.*pos_iou_thr', below_neg_iou_thr, ERROR,
         'is {value}, less than neg_iou_thr={found}',
         'a box between the two would be both positive and negative'),
    Rule('model.train_cfg.*sampler.num', outside(least=1), ERROR,
         'is {value}: no box is used in training'),
    Rule('model.train_cfg.*sampler.pos_fraction', outside(0.000001, 1), ERROR,
         'is {value}, expected a share above 0 and up to 1'),
    Rule('model.*loss_weight', outside(least=0), ERROR,
         'is {value}: the model would learn the opposite'),
    Rule('model.*loss_weight', equal_to(0), WARNING, 'is 0: this loss has no effect',
         'remove the loss, or set a weight above 0'),
    Rule(('model.*drop_path_rate', 'model.*drop_rate', 'model.*dropout_ratio'),
         outside(most=0.999), ERROR, 'is {value}, expected a share from 0 to less than 1'),
    # The optimizer
    Rule('optim_wrapper.optimizer.weight_decay', outside(least=0), ERROR,
         'is {value}: weights would grow'),
    Rule('optim_wrapper.optimizer.weight_decay', outside(most=0.999999), WARNING,
         'is {value}: published recipes use 0.0001 to 0.3'),
    Rule('optim_wrapper.optimizer.momentum', outside(0, 0.999999), ERROR,
         'is {value}, expected a share from 0 to less than 1', 'published recipes use 0.9'),
    Rule(('optim_wrapper.clip_grad.max_norm', 'optim_wrapper.clip_grad.clip_value'),
         outside(least=1e-9), ERROR, 'is {value}: all gradients would become 0',
         'write the largest norm or value of a gradient, such as 1.0'),
    Rule(('optim_wrapper.accumulative_counts', 'default_hooks.logger.interval'), outside(least=1),
         ERROR, 'is {value}, expected 1 or more'),
    # Loaders
    Rule('*_dataloader.num_workers', outside(least=0), ERROR, 'is {value}',
         'write 0 to load without workers'),
    Rule('*_dataloader.batch_size', outside(least=1), ERROR, 'is {value}, expected 1 or more'),
    Rule(('*_dataloader.persistent_workers', '*_dataloader.prefetch_factor'), without_workers,
         ERROR, 'is {value} with num_workers=0, which torch refuses', 'remove it'),
    Rule('train_dataloader.sampler.shuffle', equal_to(False), WARNING,
         'is False: images come in the same order each time', 'write True',
         scopes=('mmdet', 'mmseg', 'mmpretrain'), kinds=('DefaultSampler', 'InfiniteSampler')),
    Rule(('val_dataloader.drop_last', 'test_dataloader.drop_last'), equal_to(True), WARNING,
         'is True: the images of the last batch may not be evaluated', 'remove it'),
    Rule(('val_dataloader.sampler.type', 'test_dataloader.sampler.type'),
         described('InfiniteSampler',
         lambda s: type_name(s.beside) == 'InfiniteSampler'), ERROR,
         'is InfiniteSampler: evaluation would never end',
         "write sampler=dict(type='DefaultSampler', shuffle=False)"),
    # Pipelines
    Rule(tuple(f'{path}.pipeline[*]' for path in _EVALUATING), augments, WARNING,
         '{found} changes images at random: the scores would be for altered images',
         'use it only in training'),
    Rule(tuple(f'{path}.pipeline[*].prob' for path in ('train_dataloader*', *_EVALUATING)),
         outside(0, 1), ERROR, 'is {value}: probabilities are between 0 and 1'),
    Rule('train_dataloader.dataset*.pipeline[*]',
         described('TestTimeAug',
         lambda s: isinstance(s.value, Mapping) and type_name(s.value) == 'TestTimeAug'), ERROR,
         'TestTimeAug is for testing', 'remove it from training'),
    Rule(('train_dataloader.dataset*.pipeline[*].scale',
          'train_dataloader.dataset*.pipeline[*].crop_size'), is_small, WARNING,
         f'is {{value}} pixels: images smaller than {SMALL} show too little', 'write a larger size',
         kinds=('Resize', 'RandomCrop', 'RandomResizedCrop', 'CenterCrop', 'RandomResize')),
    Rule(tuple(f'{path}.keep_ratio' for path in _EVALUATING), keeps_other_ratio, WARNING,
         'is {value}, but {found} in training: objects have different shapes there',
         'write {found}'),
    Rule(_EVALUATING, lacks_test_mode, WARNING, 'has no test_mode=True: images without an object '
         'may be skipped, and others may take their place', 'write test_mode=True',
         scopes=('mmdet',)),
    # Length and schedule
    Rule(('val_*', 'test_*'), is_alone, ERROR, 'is None, unlike {found}: MMEngine needs all three',
         'set all, or none'),
    Rule(('train_cfg.max_epochs', 'train_cfg.max_iters', 'train_cfg.val_interval'), not_a_count,
         ERROR, 'is {value!r}, expected an integer above 0'),
    Rule('train_cfg.val_interval', evaluates_often, WARNING,
         'is {value}: training counts iterations, and would be interrupted every few iterations'),
    Rule('train_cfg.val_interval', never_due, WARNING,
         'is {value}, but {found}: it is evaluated once, at the end'),
    Rule('train_cfg.val_begin', never_due, WARNING,
         'is {value}, but {found}: it is never evaluated'),
    Rule('default_hooks.checkpoint.interval', after_the_end, WARNING,
         'is {value}, but {found}: if training stops before, nothing is saved'),
    Rule('default_hooks.checkpoint.interval', outside(least=1, but=(-1,)), ERROR,
         'is {value}, expected 1 or more', '-1 saves only the last'),
    Rule('default_hooks.checkpoint', counts_epochs_of_iterations, WARNING,
         'counts epochs, but training counts iterations: it saves once, at the end',
         'write by_epoch=False, and interval in iterations'),
    Rule('default_hooks.checkpoint', saves_often, WARNING,
         'has by_epoch=False, and saves every {value[interval]} iterations', 'write by_epoch=True'),
    Rule(('param_scheduler', 'param_scheduler[*]'), counts_epochs_of_iterations, ERROR,
         'counts epochs, stated or by default, but training counts iterations: it would never step',
         'write by_epoch=False, and begin, end and milestones in iterations'),
    Rule(('param_scheduler', 'param_scheduler[*]'), in_epochs_by_iteration, WARNING,
         'has by_epoch=False and is over after {found}', 'write by_epoch=True'),
    Rule(('param_scheduler.end', 'param_scheduler[*].end', 'param_scheduler*.T_max',
          'param_scheduler*.total_iters'), after_the_end, WARNING,
         'is {value}, but {found}: the schedule is cut off',
         'train with `epochs` instead of a changed train_cfg.max_epochs', kinds=_SHAPED),
    Rule('param_scheduler*.milestones[*]', after_the_end, WARNING,
         'is {value}, but {found}: it is never reached'),
    Rule('param_scheduler*.milestones', not_ascending, ERROR,
         'is {value}, expected ascending numbers'),
    Rule('param_scheduler', ends_early, WARNING, *ENDS_EARLY),
    Rule(('param_scheduler.end', 'param_scheduler[*].end'), ends_before_it_begins, ERROR,
         'is {value}, not after its begin'),
    Rule('log_level', described('not a level',
         lambda s: str(s.value) not in (*getLevelNamesMapping(), 'None')), ERROR,
         'is {value!r}, expected INFO, WARNING, ERROR or DEBUG'),
    Rule('custom_hooks', described('a dict', lambda s: isinstance(s.value, Mapping)), ERROR,
         'is a dict, expected a list', "write [dict(type='NAME')]"),
    Rule(('custom_hooks', 'param_scheduler', '*_evaluator', '*.pipeline'), without_class, ERROR,
         'has {found}, expected dicts with a type', "write [dict(type='NAME')]"),
    Rule('custom_hooks[*].momentum', outside(most=0.5), WARNING,
         'is {value}: in MMEngine it is the share of the new weights',
         'write 0.0002 for a decay of 0.9998',
         kinds=('EMAHook',)),
)  # fmt: skip
"""All rules, in the order of a config."""
