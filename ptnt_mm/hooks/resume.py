"""Continue a run from its checkpoint, with the current settings of the config."""

import copy
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from mmengine.hooks import CheckpointHook, Hook
from mmengine.optim import OptimWrapper, OptimWrapperDict
from mmengine.runner import IterBasedTrainLoop
from torch import nn, optim

from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.frames import one_line
from ptnt_mm.utils.numbers import is_number
from ptnt_mm.utils.text import first_few

# State of a schedule that waits for a plateau of a metric.
_BY_METRICS = {
    *('lr', 'momentum', 'betas', 'best', 'cooldown_counter', 'num_bad_epochs'),
    *('_global_step', '_last_value', 'last_step'),
}

# Optimizers with the same state for every parameter.
_KNOWN_OPTIMIZERS = (
    *(optim.Adagrad, optim.Adam, optim.AdamW, optim.Adamax, optim.NAdam, optim.RAdam),
    *(optim.Adadelta, optim.ASGD, optim.RMSprop, optim.Rprop, optim.SGD),
)

_MAX_ITERATIONS = 10_000_000  # no run has this many iterations

_START_OVER = 'or start from only its weights with `load_from`'


@HOOKS.register_module()
class ResumeHook(Hook):
    """Prefer the config's optimizer settings and schedule to those of a resumed checkpoint.

    MMEngine loads learning rates, weight decay and schedules from the checkpoint and ignores the
    config. Here only the weights, the counters and the optimizer's moments come from it. The
    config's schedule is stepped from its beginning to where training continues. If the result is
    equal to the checkpoint's, as when no setting changed, the checkpoint is left unchanged.

    A checkpoint that cannot be continued is an error before the first iteration.
    """

    # Before hooks that do not check the checkpoint.
    priority = 'VERY_HIGH'

    def after_load_checkpoint(self, runner: Any, checkpoint: dict) -> None:
        """Check the checkpoint to resume, and write the config's settings into it.

        Raises:
            UserError: if its counters, its message hub or its optimizer's state do not fit a run
                with this config; or if a schedule that depends on metrics changed.
        """
        wrapper = runner.optim_wrapper
        if not runner._resume or not isinstance(wrapper, OptimWrapper):
            return
        try:
            _check_counters(runner, checkpoint)
            _keep_to_work_dir(runner, checkpoint)
            if not isinstance(wrapper, OptimWrapperDict):
                _check_optimizer(wrapper.optimizer, checkpoint.get('optimizer'))
                _use_config(runner, checkpoint)
        except UserError as error:
            raise UserError(f'`resume={runner._load_from}`: {error}') from None
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise UserError(
                f'`resume={runner._load_from}`: its entries are not what MMEngine saves '
                f'({one_line(error, named=True)}): use a different checkpoint, {_START_OVER}'
            ) from error


def _check_counters(runner: Any, checkpoint: dict) -> None:
    """Raise unless MMEngine can continue counting."""
    meta, hub = checkpoint.get('meta', {}), checkpoint.get('message_hub', {})
    counters = [meta.get('epoch'), meta.get('iter')]
    possible = all(type(count) is int and 0 <= count <= _MAX_ITERATIONS for count in counters)
    seed = 0 if meta.get('seed') is None else meta['seed']
    possible = possible and type(seed) is int and 0 <= seed < 2**32
    if not possible or not {'log_scalars', 'runtime_info', 'resumed_keys'} <= hub.keys():
        raise UserError(
            'its epoch, iteration, seed or message_hub are not what MMEngine saves: use a '
            f'different checkpoint, {_START_OVER}'
        )
    info = hub['runtime_info']
    for score in [key for key in info if str(key).startswith('best_score')]:
        if not isinstance(info[score], (int, float)):
            del info[score]
    key = 'iter' if isinstance(runner.train_loop, IterBasedTrainLoop) else 'epoch'
    most = getattr(runner, f'max_{key}s')
    if meta[key] > most:
        raise UserError(
            f'its {key} is {meta[key]}, beyond train_cfg.max_{key}s={most}: train for longer, '
            'as with `epochs`, or use a different checkpoint'
        )


def _keep_to_work_dir(runner: Any, checkpoint: dict) -> None:
    """Drop a checkpoint's references to files elsewhere, which MMEngine would delete.

    It deletes the previous best checkpoint, and outdated ones.
    """
    info = checkpoint.get('message_hub', {}).get('runtime_info', {})
    work_dir = Path(runner.work_dir).resolve()
    out_dirs = (hook.out_dir for hook in runner.hooks if isinstance(hook, CheckpointHook))
    folders = {work_dir, *(Path(out, work_dir.name).resolve() for out in out_dirs if out)}
    for key in [key for key in info if str(key).startswith('best_ckpt')]:
        if Path(str(info[key])).resolve().parent not in folders:
            del info[key]
            runner.logger.warning(f'{key} of the checkpoint is not in {work_dir}: ignored')
    steps = info.get('keep_ckpt_ids', [])
    if not isinstance(steps, list) or not all(type(step) is int for step in steps):
        del info['keep_ckpt_ids']


def _check_optimizer(optimizer: optim.Optimizer, stored: Any) -> None:
    """Raise unless an optimizer's entry fits the config's parameters and its optimizer."""
    if not isinstance(stored, dict) or not {'state', 'param_groups'} <= stored.keys():
        raise UserError(f'it contains no optimizer state: use a different one, {_START_OVER}')
    groups, own = stored['param_groups'], optimizer.state_dict()['param_groups']
    if [group['params'] for group in groups] != [group['params'] for group in own]:
        raise UserError(
            f'its optimizer has {_sizes(groups)}, that of this config {_sizes(own)}: the model, '
            'frozen parts (as with `pretrained`) or paramwise_cfg differ. Continue with the '
            f'settings it was trained with, {_START_OVER}'
        )
    if type(optimizer) not in _KNOWN_OPTIMIZERS:
        return
    expected = _kept_by(optimizer)
    parameters = [p for group in optimizer.param_groups for p in group['params']]
    for number, entry in stored['state'].items():
        if entry.keys() != expected:
            raise UserError(
                f'its optimizer state was not written by {type(optimizer).__name__}: it has '
                f'{first_few(sorted(entry))}, expected {first_few(sorted(expected)) or "nothing"}. '
                f'Continue with the optimizer it was trained with, {_START_OVER}'
            )
        for name, value in entry.items():
            # Step counters are scalars; all else has the parameter's shape.
            if torch.as_tensor(value).dim() and value.shape != parameters[number].shape:
                raise UserError(
                    f'its optimizer has {name} of parameter {number} in a different shape: use '
                    f'a different checkpoint, {_START_OVER}'
                )


def _sizes(groups: list[dict]) -> str:
    return f'{sum(len(group["params"]) for group in groups)} parameters in {len(groups)} groups'


def _kept_by(optimizer: optim.Optimizer) -> set[str]:
    """Names of an optimizer's state for each parameter, from a step with a small one."""
    probe = nn.Parameter(optimizer.param_groups[0]['params'][0].new_zeros(1))
    probe.grad = torch.zeros_like(probe)
    twin = copy.copy(optimizer)
    twin.state = defaultdict(dict)
    twin.param_groups = [{**optimizer.param_groups[0], 'params': [probe]}]
    twin.step()
    return set(twin.state[probe])


def _use_config(runner: Any, checkpoint: dict) -> None:
    """Replace settings in a checkpoint by the config's after as many steps, if they differ."""
    schedulers = runner.param_schedulers or []
    by_metrics = [s for s in schedulers if getattr(s, 'need_val_args', False)]
    others = [s for s in schedulers if s not in by_metrics]
    _step(others, checkpoint['meta']['epoch'], checkpoint['meta']['iter'])
    before, now = checkpoint['optimizer'], runner.optim_wrapper.state_dict()
    schedules = [s.state_dict() for s in schedulers]
    left_out = {'params', *(_BY_METRICS if by_metrics else ())}
    kept = checkpoint.get('param_schedulers', [])
    for scheduler, state, old in zip(schedulers, schedules, kept, strict=False):
        if scheduler in by_metrics and 'end' in state:
            old['end'] = state['end']  # by default the length of the run, which may be longer now
    if _settings(before, kept, left_out) == _settings(now, schedules, left_out):
        return
    if by_metrics:
        raise UserError(
            'settings of its optimizer or schedule differ from the config, and a schedule that '
            'depends on metrics cannot be stepped to where training continues: restore them, '
            f'{_START_OVER}'
        )
    new, old = _rates(now), _rates(before)
    runner.logger.info(
        "The optimizer's settings and schedule are now those of the config: the learning rate "
        f'continues at {new}; the checkpoint had {old}'
    )
    used = {key: now[key] for key in ('param_groups', 'base_param_settings') if key in now}
    checkpoint['optimizer'] = {**before, **used}
    checkpoint['param_schedulers'] = schedules


def _settings(optimizer: dict, schedules: list[dict], left_out: set[str]) -> list[dict]:
    """Settings of each group, of the one that MMEngine keeps for its log, and of each schedule."""
    parts = [*optimizer['param_groups'], optimizer.get('base_param_settings') or {}, *schedules]
    return [{key: value for key, value in part.items() if key not in left_out} for part in parts]


def _step(schedulers: list, epochs: int, iterations: int) -> None:
    """Step new schedulers as often and in the same order as a run would."""
    passes = max(epochs, 1)
    with warnings.catch_warnings():
        # They warn that the optimizer takes no steps in between.
        warnings.simplefilter('ignore')
        for number in range(passes):
            for _ in range(iterations * number // passes, iterations * (number + 1) // passes):
                for scheduler in schedulers:
                    if not scheduler.by_epoch:
                        scheduler.step()
            for scheduler in schedulers if epochs else ():
                if scheduler.by_epoch:
                    scheduler.step()


def _rates(state: dict) -> str:
    rates = (group.get('lr') for group in state['param_groups'])
    return first_few(dict.fromkeys(f'{r:.6g}' if is_number(r) else str(r) for r in rates))
