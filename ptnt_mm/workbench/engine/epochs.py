"""Train for a different number of epochs: stretch everything that a config counts in epochs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Any

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.numbers import is_number
from ptnt_mm.workbench.config.settings import as_list, dicts_within, is_warm_up, type_name
from ptnt_mm.workbench.config.view import ConfigView

_FROM_BEGIN = ('T_max', 'total_iters', 'total_steps', 'step_size', 'cool_down_time', 'epochs')
"""Lengths that a schedule counts from its ``begin``."""

_EXACT = ('Constant', 'CosineAnnealing', 'Linear', 'MultiStep', 'Poly', 'QuadraticWarmup', 'Step')
"""Beginnings of the schedules that may have a share of an epoch."""

_NEVER = 10**9  # MMEngine's INF

_BY_MOMENTUM = ('ExponentialMovingAverage', 'ExpMomentumEMA')
_MOMENTUM = 0.0002  # MMEngine's default for both


def stretch(view: ConfigView, epochs: int) -> None:
    """Let a config train for a number of epochs, with its whole schedule stretched.

    Learning rates, switches of pipelines, averaged weights and the beginning of evaluation keep
    their share of the run. Evaluations and checkpoints become more frequent in a shorter run, and
    stay as frequent in a longer one. A warm-up in iterations becomes shorter, but not longer. If a
    part of a schedule is left with less than an epoch, MMEngine converts it to iterations.

    Args:
        view: Its config is changed.
        epochs: The number of epochs, at least 1.

    Raises:
        UserError: if the number is smaller, or if the config does not count its length in epochs.
    """
    config, length = view.config, view.length
    if epochs < 1:
        raise UserError(f'`epochs={epochs}`: expected an integer above 0')
    if not length.by_epoch or not float(length.end).is_integer():
        raise UserError(
            f'`epochs={epochs}` needs a config with train_cfg.max_epochs, but {view.name} trains '
            f'for {length.text}: change train_cfg.max_iters and param_scheduler in the config'
        )
    scale = _Scale(int(length.end), epochs)
    config.param_scheduler = _schedules(config.get('param_scheduler'), scale)
    config.train_cfg = _loop(view.train.loop, scale)
    for key in ('custom_hooks', 'default_hooks', 'model'):
        for _, settings in dicts_within(config.get(key), key):
            _stretch_epochs(settings, scale)
    checkpoint = config.get('default_hooks', {}).get('checkpoint')
    if isinstance(checkpoint, Mapping) and checkpoint.get('by_epoch', True):
        _change(checkpoint, 'interval', scale.interval)
        _change(checkpoint, 'save_begin', scale.epoch)


@dataclass(frozen=True)
class _Scale:
    """From one number of epochs to another."""

    before: int
    after: int

    def exact(self, epoch: float) -> float:
        """The same share of the run; an epoch after the end stays as far after it."""
        if epoch > self.before:
            return epoch - self.before + self.after
        return epoch * self.after / self.before

    def epoch(self, epoch: float) -> int:
        """The same share of the run, in whole epochs; only the beginning is 0."""
        return epoch and max(round(self.exact(epoch)), 1)

    def interval(self, epochs: int) -> int:
        """Shorter in a shorter run, never longer; -1 means never."""
        return epochs if self.after >= self.before else min(self.epoch(epochs), self.after)

    def iteration(self, iteration: int, warm_up: int) -> int:
        """The same share of the run, but a longer run has no longer warm-up."""
        share = self.after / self.before
        share = min(share, 1) if iteration <= warm_up else share
        # MMEngine never finishes a warm-up of length 1.
        return iteration and max(round(iteration * share), 2)


def _loop(loop: Mapping, scale: _Scale) -> dict:
    """The settings of the training loop."""
    loop = dict(loop, max_epochs=scale.after)
    _change(loop, 'val_begin', scale.epoch)
    _change(loop, 'val_interval', scale.interval)
    if switches := loop.get('dynamic_intervals'):
        switches = [(scale.epoch(epoch), scale.interval(every)) for epoch, every in switches]
        loop['dynamic_intervals'] = switches
    return loop


def _schedules(found: Any, scale: _Scale) -> Any:
    """Stretch one schedule, those of a list, or those of several optimizers by name."""
    if not isinstance(found, (list, tuple)):
        if isinstance(found, Mapping) and 'type' not in found:
            return {name: _schedules(inner, scale) for name, inner in found.items()}
        stretched = _schedules([found], scale) if found else [found]
        return stretched[0] if len(stretched) == 1 else stretched
    in_iterations = (s for s in found if not s.get('by_epoch', True) and not s.get('begin'))
    warm_ups = (s.get('end') for s in in_iterations if is_warm_up(s))
    warm_up = max(filter(is_number, warm_ups), default=0)
    changes = chain.from_iterable(map(_changes, filter(_may_be_exact, found)))
    places = sorted({0, scale.before, *(place for place in changes if place < scale.before)})
    places = map(scale.exact, places)
    is_short = any(later - place < 1 for place, later in pairwise(places))
    stretched = []
    for settings in found:
        if not settings.get('by_epoch', True):
            at = partial(scale.iteration, warm_up=warm_up)
            stretched.append(_schedule(settings, scale, at))
        elif is_short and _may_be_exact(settings):
            exact = _schedule(settings, scale, scale.exact) | dict(convert_to_iter_based=True)
            stretched += _in_single_steps(exact, scale.after)
        else:
            stretched.append(_schedule(settings, scale, scale.epoch))
    return [s for s in stretched if s.get('end', float('inf')) > s.get('begin', 0)]


def _may_be_exact(schedule: Mapping) -> bool:
    # A step is expressed by a factor up to 1.
    is_exact = type_name(schedule).startswith(_EXACT) and schedule.get('gamma', 0) <= 1
    return is_exact and schedule.get('by_epoch', True)


def _changes(schedule: Mapping) -> Iterator[float]:
    """The epochs in which a schedule begins, ends or steps."""
    begin = schedule.get('begin', 0)
    yield from (begin, schedule.get('end', begin), begin + schedule.get('step_size', 0))
    yield from (begin + steps for steps in schedule.get('milestones') or ())


def _in_single_steps(schedule: dict, epochs: int) -> list[dict]:
    """One schedule for each step of a schedule, if it has steps, in a run of some epochs.

    When MMEngine converts a schedule to iterations, it rounds only its begin and end.
    """
    if 'Step' not in type_name(schedule):
        return [schedule]
    begin, gamma = schedule.pop('begin', 0), schedule.pop('gamma', 0.1)
    end = min(schedule.get('end', epochs), epochs)
    schedule |= dict(type=type_name(schedule).replace('Multi', '').replace('Step', 'Constant'))
    size, milestones = schedule.pop('step_size', None), schedule.pop('milestones', ())
    steps = milestones if size is None else (size * i for i in range(1, int(end / size) + 1))
    ever = (begin + step for step in steps if begin + step < end)
    return [schedule | dict(factor=gamma, begin=step, end=_NEVER) for step in ever]


def _schedule(schedule: Mapping, scale: _Scale, at: Callable[[float], float]) -> dict:
    """The settings of a schedule; ``at`` changes its unit, epochs or iterations."""
    schedule, begin = dict(schedule), schedule.get('begin', 0)

    def since_begin(steps: float) -> float:
        return at(begin + steps) - at(begin) or 1

    for key in _FROM_BEGIN:
        _change(schedule, key, since_begin)
    if schedule.get('milestones'):
        schedule['milestones'] = [*map(since_begin, schedule['milestones'])]
    if schedule.get('periods'):
        ends = [0, *map(since_begin, accumulate(schedule['periods']))]
        schedule['periods'] = [end - start for start, end in pairwise(ends)]
    for key in ('begin', 'end'):
        _change(schedule, key, at)
    if type_name(schedule).startswith('Exponential'):
        _change(schedule, 'gamma', lambda gamma: gamma ** (scale.before / scale.after))
    lasts = schedule.get('end', 0) - schedule.get('begin', 0)
    if is_warm_up(schedule) and schedule.get('by_epoch', True) and lasts == 1:
        # MMEngine never finishes a warm-up of length 1.
        schedule['convert_to_iter_based'] = True
    return schedule


def without_empty(found: Any, epoch_length: int) -> Any:
    """Schedules without those that MMEngine would convert to no iterations, and cannot build.

    Args:
        found: One, a list, or those of several optimizers by name.
        epoch_length: Iterations of an epoch.
    """
    if isinstance(found, Mapping) and 'type' not in found:
        return {name: without_empty(inner, epoch_length) for name, inner in found.items()}
    return [schedule for schedule in as_list(found) if not _is_empty(schedule, epoch_length)]


def _is_empty(schedule: Any, epoch_length: int) -> bool:
    if not isinstance(schedule, Mapping) or not schedule.get('convert_to_iter_based'):
        return False
    begin = int(schedule.get('begin', 0) * epoch_length)
    end = int(schedule.get('end', _NEVER) * epoch_length)
    # MMEngine never finishes a warm-up of length 1.
    return end - begin < 1 + is_warm_up(schedule)


def _stretch_epochs(settings: dict, scale: _Scale) -> None:
    """Stretch what a hook or a head counts in epochs, and how long weights are averaged."""
    for key in settings:
        if key.startswith('num_last_epoch'):
            _change(settings, key, lambda last: scale.after - scale.epoch(scale.before - last))
        elif key.endswith(('_epoch', '_epochs')):
            _change(settings, key, scale.epoch)
    kind = settings.get('ema_type', _BY_MOMENTUM[0])
    if type_name(settings) == 'EMAHook' and kind in _BY_MOMENTUM:
        momentum = settings.get('momentum', _MOMENTUM) * scale.before / scale.after
        settings['momentum'] = min(momentum, 0.5)  # MMEngine warns of more


def _change(settings: dict, key: str, change: Callable[[Any], Any]) -> None:
    """Change a setting, if it is a finite number that counts something."""
    value = settings.get(key)
    if is_number(value) and 0 < value < float('inf'):
        settings[key] = change(value)
