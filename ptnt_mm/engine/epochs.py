"""Train for a different number of epochs: stretch everything that a config counts in epochs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from mmengine.config import Config

from ptnt_mm.config.settings import dicts_within, type_name
from ptnt_mm.config.view import ConfigView
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.numbers import is_number

_FROM_BEGIN = ('T_max', 'total_iters', 'total_steps', 'step_size', 'cool_down_time', 'epochs')
"""Lengths that a schedule counts from its ``begin``."""

_BY_MOMENTUM = ('ExponentialMovingAverage', 'ExpMomentumEMA')
_MOMENTUM = 0.0002  # MMEngine's default for both


def stretch(config: Config, epochs: int) -> None:
    """Let a config train for a number of epochs, with its whole schedule stretched.

    Learning rates, switches of pipelines, averaged weights and the beginning of evaluation keep
    their share of the run. Evaluations and checkpoints become more frequent in a shorter run, and
    stay as frequent in a longer one. A warm-up in iterations becomes shorter, but not longer.

    Args:
        config: Changed in place.
        epochs: The number of epochs, at least 1.

    Raises:
        UserError: if the number is smaller, or if the config does not count its length in epochs.
    """
    view = ConfigView(config)
    length = view.length
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

    def epoch(self, epoch: int) -> int:
        """The same share of the run; what comes after its end still does."""
        if epoch > self.before:
            return epoch - self.before + self.after
        return epoch and max(round(epoch * self.after / self.before), 1)

    def interval(self, epochs: int) -> int:
        """Shorter in a shorter run, never longer; -1 means never."""
        return epochs if self.after >= self.before else min(self.epoch(epochs), self.after)

    def iteration(self, iteration: int, warm_up: int) -> int:
        """The same share of the run, but a longer run has no longer warm-up."""
        share = self.after / self.before
        share = min(share, 1) if iteration <= warm_up else share
        # MMEngine's warm-up of one iteration never ends.
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
    """Stretch one schedule, those of a list, or those of several optimizers by name.

    A schedule that is left without an epoch is removed.
    """
    if not isinstance(found, (list, tuple)):
        if isinstance(found, Mapping) and 'type' not in found:
            return {name: _schedules(inner, scale) for name, inner in found.items()}
        return next(iter(_schedules([found], scale)), None) if found else found
    in_iterations = (s for s in found if not s.get('by_epoch', True) and not s.get('begin'))
    warm_ups = (s.get('end') for s in in_iterations if _warms_up(s))
    warm_up = max(filter(is_number, warm_ups), default=0)
    stretched = (_schedule(settings, scale, warm_up) for settings in found)
    return [s for s in stretched if s.get('end', float('inf')) > s.get('begin', 0)]


def _warms_up(schedule: Mapping) -> bool:
    return type_name(schedule).startswith(('Linear', 'Constant', 'QuadraticWarmup'))


def _schedule(schedule: Mapping, scale: _Scale, warm_up: int) -> dict:
    """The settings of a schedule that counts epochs, or iterations of training by epochs."""
    by_epoch = schedule.get('by_epoch', True)
    at = scale.epoch if by_epoch else partial(scale.iteration, warm_up=warm_up)
    schedule, begin = dict(schedule), schedule.get('begin', 0)

    def since_begin(steps: int) -> int:
        return max(at(begin + steps) - at(begin), 1)

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
    if by_epoch and _warms_up(schedule) and schedule.get('end') == schedule.get('begin', 0) + 1:
        # By epochs, a warm-up of one never ends.
        schedule['convert_to_iter_based'] = True
    return schedule


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
