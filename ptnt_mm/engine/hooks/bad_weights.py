"""Stop before weights that are not numbers take the place of good ones."""

from collections.abc import Iterator
from typing import Any

import torch
from mmengine.dist import all_gather_object
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.optim import OptimWrapper, OptimWrapperDict
from torch import Tensor

from ptnt_mm.engine.hooks.bad_loss import ADVICE
from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import some


@HOOKS.register_module()
class StopAtBadWeightsHook(Hook):
    """Raise if the model holds NaN or infinity when training begins, is evaluated or ends.

    A finite loss does not prove it sound: the last step may have ruined it.
    :class:`WholeCheckpointHook` looks before it writes a file.
    """

    # Before EMAHook swaps weights, and before hooks that save or publish them.
    priority = 'VERY_HIGH'

    def before_train(self, runner: Any) -> None:
        """Look at what training starts from."""
        require_finite(runner, runner.iter)

    def before_val_epoch(self, runner: Any) -> None:
        """Look before time is spent on an evaluation, which may save the weights as the best."""
        require_finite(runner, runner.iter)

    def after_train(self, runner: Any) -> None:
        """Look at the result, whether or not a checkpoint was due."""
        require_finite(runner, runner.iter)


def require_finite(runner: Any, iterations: int) -> None:
    """Look at all that a checkpoint is made of; every process of a training has to call this.

    Args:
        runner: A runner; one that does not train is left alone.
        iterations: How many it has done.

    Raises:
        UserError: in all processes, if one of them holds NaN or infinity in a parameter, a buffer,
            the averaged model or the state of the optimizer.
    """
    if not isinstance(runner.optim_wrapper, OptimWrapper):
        return
    bad = [
        name
        for name, value in _weights(runner)
        # Modules may keep other things in their state, too.
        if isinstance(value, Tensor) and not torch.isfinite(value).all()
    ]
    # Together: a process that went on would wait for the others without end.
    bad = next(filter(None, all_gather_object(bad)), None)
    if bad is None:
        return
    found = f'{len(bad)} weights hold NaN or infinity: {some(bad)}'
    if iterations == 0:
        raise UserError(
            f'before the first iteration {found}. Start from other weights; a buffer that is '
            'infinite on purpose needs register_buffer(..., persistent=False)'
        )
    last = runner.message_hub.runtime_info.get('last_ckpt')
    kept = f'the last good checkpoint is {last}' if last else 'no checkpoint was written before'
    raise UserError(
        f'iteration {iterations}: {found}. They are not saved; {kept}. No loss was bad, '
        f'so a step was too large: {ADVICE}'
    )


def _weights(runner: Any) -> Iterator[tuple[str, Any]]:
    """All weights by name: the model's, averaged ones, and what the optimizer keeps of each."""
    model = runner.model.module if is_model_wrapper(runner.model) else runner.model
    yield from model.state_dict().items()
    for hook in runner.hooks:
        if hasattr(hook, 'ema_model'):
            averaged = hook.ema_model.state_dict().items()
            yield from ((f'averaged {name}', value) for name, value in averaged)
    names = {parameter: name for name, parameter in model.named_parameters()}
    several = isinstance(runner.optim_wrapper, OptimWrapperDict)
    for wrapper in runner.optim_wrapper.values() if several else [runner.optim_wrapper]:
        for parameter, state in wrapper.optimizer.state.items():
            yield from ((f'{key} of {names.get(parameter)}', value) for key, value in state.items())
