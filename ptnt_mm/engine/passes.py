"""Where a training is: in epochs, or in iterations and passes through the data."""

from typing import Any

from mmengine.runner import IterBasedTrainLoop

from ptnt_mm.engine.endless import EndlessLoader


def where(runner: Any) -> str:
    """The present iteration, in words, counted from 1."""
    iteration = f'iteration {runner.iter + 1}'
    if isinstance(runner.train_loop, IterBasedTrainLoop):
        return iteration
    return f'epoch {runner.epoch + 1}, {iteration}'


def ends_a_pass(runner: Any) -> bool:
    """Whether all of the data was seen once more when the present iteration ends.

    An epoch is one pass; with MMEngine's own iteration-based loop in several processes it is one of
    all of them together.
    """
    loader = runner.train_dataloader
    length = loader.pass_length if isinstance(loader, EndlessLoader) else len(loader)
    return (runner.iter + 1) % length == 0
