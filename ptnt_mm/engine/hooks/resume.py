"""Continue a training where its checkpoint is, with the settings that the config gives now."""

import copy
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapper, OptimWrapperDict
from mmengine.runner import IterBasedTrainLoop
from torch import Tensor, nn, optim

from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import some

# What a scheduler counts; all else in its state is a setting. The last three are for schedulers
# that wait for a plateau of a metric.
_COUNTED = {'_global_step', '_last_value', 'last_step', 'verbose'}
_COUNTED |= {'best', 'cooldown_counter', 'num_bad_epochs'}

# Optimizers whose state for a parameter is numbers, and tensors of the parameter's shape.
_USUAL = (optim.Adagrad, optim.Adam, optim.AdamW, optim.Adamax, optim.NAdam, optim.RAdam)
_USUAL += (optim.Adadelta, optim.ASGD, optim.RMSprop, optim.Rprop, optim.SGD)

_MOST = 10_000_000
"""No training has this many iterations."""

_START_ANEW = 'or start from its weights alone with --load-from'


@HOOKS.register_module()
class ResumeHook(Hook):
    """Let the config's optimizer settings and schedule win over those of a resumed checkpoint.

    MMEngine loads learning rates, weight decay and schedules from the checkpoint, whatever the
    config says. Here the weights, the counters and the optimizer's moments come from it. Settings
    that are equal are left as they were saved. If any differs, the config's schedule is stepped
    from its beginning to where training goes on.

    A checkpoint that cannot be continued is an error before the first iteration.
    """

    # Before hooks that trust what they read.
    priority = 'VERY_HIGH'

    def after_load_checkpoint(self, runner: Any, checkpoint: dict) -> None:
        """Check a checkpoint that is to be resumed, and bring the config's settings into it.

        Raises:
            UserError: if its counters, its message hub or its optimizer's state are not those of
                a training with this config; or if a schedule that depends on metrics changed.
        """
        wrapper = runner.optim_wrapper
        if not runner._resume or not isinstance(wrapper, OptimWrapper):
            return
        try:
            _check_meta(runner, checkpoint.get('meta'))
            _check_hub(checkpoint.get('message_hub'))
            if isinstance(wrapper, OptimWrapperDict):
                return
            _check_optimizer(wrapper, checkpoint.get('optimizer'))
            if not _agrees(runner, checkpoint):
                _use_config(runner, checkpoint)
        except UserError as error:
            raise UserError(f'--resume {runner._load_from}: {error}') from None


def _check_meta(runner: Any, meta: Any) -> None:
    """Raise unless epoch, iteration and seed are possible ones."""
    meta = meta if isinstance(meta, dict) else {}
    for key in ('epoch', 'iter'):
        if type(meta.get(key)) is not int or not 0 <= meta[key] <= _MOST:
            raise UserError(
                f'its {key} is {meta.get(key)!r:.40}: expected a whole number from 0 to {_MOST}. '
                f'Take another checkpoint, {_START_ANEW}'
            )
    seed = meta.get('seed', 0)
    if seed is not None and (type(seed) is not int or not 0 <= seed < 2**32):
        raise UserError(
            f'its seed is {seed!r:.40}: expected a whole number from 0 to {2**32 - 1}. '
            'Take another checkpoint'
        )
    key = 'iter' if isinstance(runner.train_loop, IterBasedTrainLoop) else 'epoch'
    most = getattr(runner, f'max_{key}s')
    if meta[key] > most:
        raise UserError(
            f'its {key} is {meta[key]}, beyond train_cfg.max_{key}s={most}: train for longer, or '
            'take another checkpoint'
        )


def _check_hub(hub: Any) -> None:
    """Raise unless MMEngine's message hub can take it; drop best scores that are not numbers."""
    parts = ('log_scalars', 'runtime_info', 'resumed_keys')
    if not isinstance(hub, dict) or not all(isinstance(hub.get(part), dict) for part in parts):
        raise UserError(
            f'its message_hub is not what MMEngine saves: take another checkpoint, {_START_ANEW}'
        )
    info = hub['runtime_info']
    for key in [key for key in info if str(key).startswith('best_score')]:
        if not isinstance(info[key], (int, float)):
            del info[key]


def _check_optimizer(wrapper: OptimWrapper, stored: Any) -> None:
    """Raise unless an optimizer's entry fits the config's parameters and its optimizer."""
    own = wrapper.optimizer.state_dict()['param_groups']
    stored = stored if isinstance(stored, dict) else {}
    groups, state = stored.get('param_groups'), stored.get('state')
    are_groups = isinstance(groups, list) and all(isinstance(group, dict) for group in groups)
    if not are_groups or not isinstance(state, dict):
        raise UserError(f'it holds no optimizer state: take another one, {_START_ANEW}')
    if [group.get('params') for group in groups] != [group['params'] for group in own]:
        raise UserError(
            f'its optimizer has {_sizes(groups)}, and this config makes {_sizes(own)}: the model, '
            'what is frozen (as --pretrained does) or paramwise_cfg differ. Continue with the '
            f'settings it was trained with, {_START_ANEW}'
        )
    parameters = [p for group in wrapper.optimizer.param_groups for p in group['params']]
    for number, entry in state.items():
        if fault := _fault(wrapper.optimizer, parameters, number, entry):
            raise UserError(
                'its optimizer state was not written by '
                f'{type(wrapper.optimizer).__name__}: {fault}. '
                f'Continue with the optimizer it was trained with, {_START_ANEW}'
            )


def _sizes(groups: list[dict]) -> str:
    parameters = sum(len(group.get('params') or ()) for group in groups)
    return f'{parameters} parameters in {len(groups)} groups'


def _fault(
    optimizer: optim.Optimizer, parameters: list[nn.Parameter], number: Any, entry: Any
) -> str | None:
    """What is wrong with the state of one parameter; None if nothing is."""
    if type(number) is not int or not 0 <= number < len(parameters):
        return f'there is no parameter {number!r:.40}'
    if type(optimizer) not in _USUAL:
        return None
    # What a step leaves in a fresh optimizer of the same settings, for a parameter of as many
    # dimensions, but small ones.
    parameter = parameters[number]
    probe = nn.Parameter(parameter.new_zeros(tuple(range(2, 2 + parameter.dim()))))
    probe.grad = torch.zeros_like(probe)
    twin = copy.copy(optimizer)
    twin.state = defaultdict(dict)
    twin.param_groups = [{**optimizer.param_groups[0], 'params': [probe]}]
    twin.step()
    expected = twin.state[probe]
    if not isinstance(entry, dict) or entry.keys() != expected.keys():
        found = ', '.join(map(str, entry)) if isinstance(entry, dict) else type(entry).__name__
        return f'it has {found[:80] or "nothing"} in place of {", ".join(expected) or "nothing"}'
    for name, value in expected.items():
        shape = _shape(value)
        if _shape(entry[name]) != (parameter.shape if shape == probe.shape else shape):
            return f'{name} of parameter {number} has another shape or type'
    return None


def _shape(value: Any) -> tuple | None:
    """The shape of a tensor, () of a number, or None."""
    if isinstance(value, (int, float)):
        return ()
    return tuple(value.shape) if isinstance(value, Tensor) else None


def _agrees(runner: Any, checkpoint: dict) -> bool:
    """Whether a checkpoint's settings and schedule are the config's, and at the right place."""
    schedulers = runner.param_schedulers or []
    stored = checkpoint.get('param_schedulers', [])
    if not isinstance(stored, list) or len(stored) != len(schedulers):
        return False
    pairs = zip(schedulers, stored, strict=True)
    if not all(_is_on_course(scheduler, entry, checkpoint['meta']) for scheduler, entry in pairs):
        return False
    scheduled = {scheduler.param_name for scheduler in schedulers}
    if 'momentum' in scheduled:
        # It is Adam's first beta.
        scheduled.add('betas')
    own = _settings(runner.optim_wrapper.state_dict())
    groups = zip(_settings(checkpoint['optimizer']), own, strict=True)
    return all(_agree(before, now, scheduled) for before, now in groups)


def _is_on_course(scheduler: Any, entry: Any, meta: dict) -> bool:
    """Whether a scheduler's saved state is of the same settings, and where training stopped."""
    own = scheduler.state_dict()
    if not isinstance(entry, dict) or entry.keys() != own.keys():
        return False
    if any(entry[key] != value for key, value in own.items() if key not in _COUNTED):
        return False
    if _is_plateau(scheduler):
        return True
    done = meta['epoch'] if scheduler.by_epoch else meta['iter']
    last = min(done, scheduler.end - 1) - scheduler.begin
    return (entry['_global_step'], entry['last_step']) == (done, max(last, -1))


def _agree(stored: dict, own: dict, scheduled: set[str]) -> bool:
    """Whether the settings of a group are equal, except those that change in training."""
    return stored.keys() == own.keys() and all(
        _alike(stored[key], value) if key in scheduled else stored[key] == value
        for key, value in own.items()
        if key != 'params'
    )


def _alike(stored: Any, own: Any) -> bool:
    """Whether both are numbers, or lists of equally many numbers."""
    if isinstance(own, (list, tuple)):
        return (
            isinstance(stored, (list, tuple))
            and len(stored) == len(own)
            and all(map(_alike, stored, own))
        )
    return _shape(stored) == _shape(own) is not None


def _settings(optimizer: dict) -> Iterator[dict]:
    """The groups of an optimizer's state dict, and the one that MMEngine keeps for its log."""
    yield from optimizer['param_groups']
    yield optimizer.get('base_param_settings') or {}


def _use_config(runner: Any, checkpoint: dict) -> None:
    """Put the config's settings in place of a checkpoint's, as they are after as many steps."""
    schedulers = runner.param_schedulers or []
    if any(map(_is_plateau, schedulers)):
        raise UserError(
            'settings of its optimizer or schedule differ from the config, and a schedule that '
            'depends on metrics cannot be brought to where training goes on: set them back, '
            f'{_START_ANEW}'
        )
    _step(schedulers, checkpoint['meta']['epoch'], checkpoint['meta']['iter'])
    own = runner.optim_wrapper.state_dict()
    now, before = (
        some(dict.fromkeys(f'{group.get("lr")!s:.8}' for group in one['param_groups']))
        for one in (own, checkpoint['optimizer'])
    )
    runner.logger.warning(
        "The optimizer's settings or its schedule are not those of the checkpoint. The config's "
        f'are used: the learning rate goes on at {now}; the checkpoint had {before}'
    )
    settings = {key: own[key] for key in own if key in ('param_groups', 'base_param_settings')}
    checkpoint['optimizer'] = {**checkpoint['optimizer'], **settings}
    checkpoint['param_schedulers'] = [item.state_dict() for item in schedulers]


def _step(schedulers: list, epochs: int, iterations: int) -> None:
    """Step fresh schedulers as often, and in the order, as a training would have."""
    passes = max(epochs, 1)
    with warnings.catch_warnings():
        # They warn that the optimizer makes no steps in between.
        warnings.simplefilter('ignore')
        for number in range(passes):
            for _ in range(iterations * number // passes, iterations * (number + 1) // passes):
                for scheduler in schedulers:
                    if not scheduler.by_epoch:
                        scheduler.step()
            for scheduler in schedulers if epochs else ():
                if scheduler.by_epoch:
                    scheduler.step()


def _is_plateau(scheduler: Any) -> bool:
    return getattr(scheduler, 'need_val_args', False)
