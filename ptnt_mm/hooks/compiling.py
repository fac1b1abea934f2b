"""Compile parts of a model for training."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.hooks import Hook

from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.wrappers import unwrapped


@HOOKS.register_module()
class CompileHook(Hook):
    """Compile parts of a model with ``torch.compile`` when training starts.

    MMEngine's ``compile=True`` compiles the whole step with the losses and the optimizer: for
    detectors that is a new graph for each number of objects. Parts keep their names in checkpoints.

    Args:
        parts: Names of modules, such as 'backbone' and 'neck'.
        dynamic: Whether one graph serves images of all sizes; by default, each size of the first
            few gets its own, as torch chooses.
        mode: One of ``torch.compile``, such as 'reduce-overhead', which starts all operators of a
            part at once on a GPU, as a CUDA graph.

    Raises:
        TypeError: for a name in place of a list of names.
        RuntimeError: torch's, if it has no such mode.
    """

    # After hooks that run the model in `before_train`, such as HealthHook.
    priority = 'VERY_LOW'

    def __init__(
        self,
        parts: Sequence[str] = ('backbone',),
        dynamic: bool | None = None,
        mode: str | None = None,
    ):
        if isinstance(parts, str):
            raise TypeError(f'parts is {parts!r}: expected a list of names, such as [{parts!r}]')
        if mode is not None:
            torch.compile(lambda: None, mode=mode)  # refuses an unknown mode before the run starts
        self.parts = tuple(parts)
        self.settings = dict(dynamic=dynamic, mode=mode)

    def before_train(self, runner: Any) -> None:
        """Compile each part; it takes place at its first forward pass.

        Raises:
            AttributeError: torch's, if the model has no part of this name.
        """
        model = unwrapped(runner.model)
        for name in self.parts:
            model.get_submodule(name).compile(**self.settings)
