"""Predicates of the rule table: whether a setting is wrong."""

from collections.abc import Mapping

from ptnt_mm.check.rules import Predicate, Setting
from ptnt_mm.config.settings import dicts_within, type_name
from ptnt_mm.utils.numbers import is_number

_AUGMENTING = (
    'AutoAugment', 'CachedMixUp', 'CachedMosaic', 'ColorJitter', 'CopyPaste', 'CutOut', 'Expand',
    'GeomTransform', 'MinIoURandomCrop', 'MixUp', 'Mosaic', 'PhotoMetricDistortion', 'RandAugment',
    'TrivialAugmentWide', 'YOLOXHSVRandomAug',
)  # fmt: skip
_PARTS = ('dataloader', 'cfg', 'evaluator')  # of an evaluation, in a config
SMALL = 32  # pixels: CIFAR's images are as large


def below(limit: float, but: tuple = ()) -> Predicate:
    """A number less than ``limit``, with exceptions."""
    return lambda s: is_number(s.value) and s.value < limit and s.value not in but


def outside(least: float, most: float) -> Predicate:
    """A number that is not in [least, most]."""
    return lambda s: is_number(s.value) and not least <= s.value <= most


def above(limit: float) -> Predicate:
    """A number above ``limit``."""
    return lambda s: is_number(s.value) and s.value > limit


def equal_to(expected: object) -> Predicate:
    """A value, such as None, True or 0; True is not 1."""
    return lambda s: (
        s.value is expected or (is_number(s.value) and is_number(expected) and s.value == expected)
    )


def not_a_count(setting: Setting) -> bool:
    """A number, or a boolean, that is not an integer above 0; infinity is one.

    Text is left to the check of spelling.
    """
    value = setting.value
    return isinstance(value, (int, float)) and (value < 1 or value % 1 > 0)


def _after_the_end(setting: Setting) -> str | bool:
    """A number in the loop's unit that training never reaches."""
    length = setting.view.length
    is_after = is_number(setting.value) and length.end < setting.value < float('inf')
    return is_after and f'training ends after {length.text}'


def after_the_end(setting: Setting) -> str | bool:
    """A number of a schedule or hook, in the unit of the loop, after the end of training."""
    by_epoch = setting.beside.get('by_epoch', True)
    return by_epoch == setting.view.length.by_epoch and _after_the_end(setting)


def never_due(setting: Setting) -> str | bool:
    """A number of a loop, which evaluates never or once; the first after the end is allowed."""
    return setting.value != setting.view.length.end + 1 and _after_the_end(setting)


def counts_epochs_of_iterations(setting: Setting) -> bool:
    """A schedule or hook by epochs, explicitly or by default, in a loop by iterations."""
    has_unit = isinstance(setting.value, Mapping) and 'type' in setting.value
    by_epoch = has_unit and setting.value.get('by_epoch', True)
    known = setting.view.length.end < float('inf')
    return bool(by_epoch) and known and not setting.view.length.by_epoch


def in_epochs_by_iteration(setting: Setting) -> str | bool:
    """Ends in a schedule by iterations that look like epochs; warm-ups may be short."""
    length, schedule = setting.view.length, setting.value
    if not isinstance(schedule, Mapping) or not length.by_epoch or schedule.get('by_epoch', True):
        return False
    ends = [schedule.get(key) for key in ('end', 'T_max', 'total_iters')]
    ends += schedule.get('milestones') or ()
    warms_up = type_name(schedule) in ('LinearLR', 'ConstantLR', 'QuadraticWarmupLR')
    late = [end for end in ends if is_number(end) and end <= length.end]
    return not warms_up and bool(late) and f'{max(late)} iterations; training has {length.text}'


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
    is_random = kind.startswith('Random') or kind in _AUGMENTING
    return bool(step.get('prob', 1.0)) and is_random and kind


def windows_lack(setting: Setting) -> str | bool:
    """Sliding windows without a size or a stride; returns which is missing."""
    lacking = [key for key in ('crop_size', 'stride') if setting.beside.get(key) is None]
    return setting.value == 'slide' and ' and '.join(lacking)


def _is_pair(value: object) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and all(map(is_number, value))


def is_no_pair(setting: Setting) -> bool:
    """The size or stride of sliding windows that is not two numbers."""
    is_used = setting.beside.get('mode') == 'slide' and setting.value is not None
    return is_used and not _is_pair(setting.value)


def leaves_gaps(setting: Setting) -> str | bool:
    """A stride that is longer than the window; returns the window."""
    crop = setting.beside.get('crop_size')
    if setting.beside.get('mode') != 'slide' or not (_is_pair(crop) and _is_pair(setting.value)):
        return False
    pairs = zip(setting.value, crop, strict=False)
    return any(step > side for step, side in pairs) and f'windows of {tuple(crop)}'


def is_small(setting: Setting) -> bool:
    """A size of images, as one number or two, that is too small."""
    sides = setting.value if isinstance(setting.value, (list, tuple)) else [setting.value]
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
    """An interval of so few iterations that epochs were probably meant."""
    length = setting.view.length
    often = is_number(setting.value) and 0 < setting.value <= 10
    return often and not length.by_epoch and 1000 < length.end < float('inf')
