"""Run parts of a model as CUDA graphs in training, one graph for each size of image."""

import copy
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.model import is_model_wrapper
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_flatten, tree_unflatten

from ptnt_mm.config.build import unwrapped
from ptnt_mm.engine.hooks.compiling import CompileHook
from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.errors import UserError

IDLE = 500
"""A graph makes room for another size once it was not used for this many steps. If more sizes
recur than there is room for, those that came first keep theirs, and nothing is captured again."""

Capture = Callable[[Callable, tuple[Tensor, ...]], Callable]
"""From a function of tensors and sample inputs to one that does the same as a graph."""


class TorchCapture:
    """Capture with ``torch.cuda.make_graphed_callables``.

    All graphs of a part share a pool of memory: only one of them runs in a step.

    Raises:
        UserError: if there is no CUDA device.
    """

    def __init__(self):
        require_cuda('CudaGraphHook')
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, function: Callable, samples: tuple[Tensor, ...]) -> Callable:
        """A function as a graph that computes in the memory of ``samples``."""
        return torch.cuda.make_graphed_callables(
            function, samples, allow_unused_input=True, pool=self.pool
        )


class GraphedPart:
    """The forward pass of a module, in training as a graph for each size that recurs.

    Takes the place of the module's ``forward``. Evaluation, unusual arguments, rare sizes and
    further calls in a step run as before: a second call would overwrite what the first one's
    backward pass needs.

    Args:
        part: The module. Its arguments are tensors, or lists and tuples of them.
        after: A size gets a graph when it is seen for this many-th time.
        most: The largest number of graphs.
        capture: How graphs are made; by default with torch.

    Raises:
        UserError: without a CUDA device, or if the part cannot be a graph.
    """

    def __init__(
        self, part: nn.Module, after: int = 3, most: int = 16, capture: Capture | None = None
    ):
        _require_plain(part)
        self.part, self.after, self.most = part, after, most
        self.capture = TorchCapture() if capture is None else capture
        self.parameters = dict(part.named_parameters())
        self.graphs: OrderedDict[tuple, Callable | None] = OrderedDict()
        self.used_at: dict[tuple, int] = {}
        self.seen: Counter[tuple] = Counter()
        self.step, self.is_used = 0, False

    def __deepcopy__(self, memo: dict) -> Callable:
        """The forward pass of a copied module, which runs no graphs."""
        return partial(type(self.part).forward, copy.deepcopy(self.part, memo))

    def install(self) -> None:
        """Replace the module's forward pass."""
        self.part.forward = self

    def remove(self) -> None:
        """Restore the module's forward pass, and free all graphs."""
        del self.part.forward
        self.graphs.clear()

    def start_step(self) -> None:
        """Allow one graph to run; what it returned in the last step is no longer needed."""
        self.step, self.is_used = self.step + 1, False

    def keep_gradients(self) -> None:
        """Copy gradients that the next step adds to: the graph would overwrite them.

        Autograd keeps the first gradient of a parameter without copying it, in the graph's memory.
        """
        if self.is_used:
            for parameter in self.parameters.values():
                if parameter.grad is not None:
                    parameter.grad = parameter.grad.clone()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As the module's forward pass."""
        inputs, structure = tree_flatten(args)
        if self.is_used or kwargs or not self._is_training(inputs):
            return self._plain(*args, **kwargs)
        key = (structure, *_circumstances(inputs, self.parameters.values()))
        self.seen[key] += 1
        if key not in self.graphs and self.seen[key] >= self.after and self._has_room():
            self.graphs[key] = self._captured(inputs, structure)
        if key not in self.graphs:
            return self._plain(*args)
        # Also where memory did not suffice, so that it is not tried again and again.
        self.graphs.move_to_end(key)
        self.used_at[key] = self.step
        graph = self.graphs[key]
        if graph is None:
            return self._plain(*args)
        self.is_used = True
        return graph(*inputs, *self.parameters.values())

    def _is_training(self, inputs: list) -> bool:
        tensors = bool(inputs) and all(isinstance(each, Tensor) for each in inputs)
        return tensors and self.part.training and torch.is_grad_enabled()

    def _plain(self, *args: Any, **kwargs: Any) -> Any:
        return type(self.part).forward(self.part, *args, **kwargs)

    def _has_room(self) -> bool:
        """Whether another graph fits; one that is idle makes room."""
        if len(self.graphs) < self.most:
            return True
        oldest = next(iter(self.graphs))
        if self.step - self.used_at[oldest] < IDLE:
            return False
        del self.graphs[oldest], self.used_at[oldest], self.seen[oldest]
        return True

    def _captured(self, inputs: list[Tensor], structure: Any) -> Callable | None:
        """A graph for inputs like these; None if memory does not suffice.

        It takes the parameters as inputs. Their samples share the parameters' memory, but not
        their place in autograd, which would tie later steps to the stream of the capture.
        """
        shell, number = _Shell(self.part), len(inputs)
        names = [f'part.{name}' for name in self.parameters]

        def function(*tensors: Tensor) -> Any:
            weights = dict(zip(names, tensors[number:], strict=True))
            return functional_call(
                shell, weights, tree_unflatten(list(tensors[:number]), structure)
            )

        copies = [each.detach().clone().requires_grad_(each.requires_grad) for each in inputs]
        samples = (*copies, *map(_like, self.parameters.values()))
        before = [(buffer, buffer.clone()) for buffer in self.part.buffers()]
        device = inputs[0].device
        autocast = torch.autocast(
            device.type,
            dtype=torch.get_autocast_dtype(device.type),
            enabled=torch.is_autocast_enabled(device.type),
            cache_enabled=False,  # a graph casts weights itself: they change
        )
        try:
            # Warming up draws random numbers and updates statistics.
            with torch.random.fork_rng([device] if device.type == 'cuda' else []), autocast:
                return self.capture(function, samples)
        except torch.OutOfMemoryError:
            sizes = ', '.join('x'.join(map(str, each.shape)) for each in inputs)
            print_log(f'no memory for a CUDA graph of {sizes}: it runs as before', 'current')
            return None
        except RuntimeError as error:
            raise UserError(
                f'{type(self.part).__name__} cannot run as a CUDA graph '
                f'({next(iter(str(error).splitlines()), "no reason given")}): omit `cuda_graphs`'
            ) from error
        finally:
            with torch.no_grad():
                for buffer, value in before:
                    if not torch.equal(buffer, value):
                        buffer.copy_(value)


class _Shell(nn.Module):
    """Calls the forward pass of a module's class, which :class:`GraphedPart` replaces."""

    def __init__(self, part: nn.Module):
        super().__init__()
        self.part = part

    def forward(self, *args: Any) -> Any:
        return type(self.part).forward(self.part, *args)


def _like(tensor: Tensor) -> Tensor:
    """The same memory, as another leaf of autograd."""
    return tensor.detach().requires_grad_(tensor.requires_grad)


def _circumstances(inputs: list[Tensor], parameters: Any) -> tuple:
    """All that a graph takes for granted, besides its module."""
    kind = inputs[0].device.type
    shapes = tuple((each.shape, each.dtype, each.requires_grad) for each in inputs)
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    return shapes, dtype, tuple(parameter.requires_grad for parameter in parameters)


def require_cuda(mode: str) -> None:
    """Raise a UserError if torch finds no CUDA device for a mode."""
    if not torch.cuda.is_available():
        raise UserError(f'{mode} needs a CUDA device, and torch finds none: omit it')


def _require_plain(part: nn.Module) -> None:
    """Raise a UserError if blocks are recomputed, or if the part is compiled."""
    kind = type(part).__name__
    for module in part.modules():
        if getattr(module, 'with_cp', False):
            raise UserError(
                f'{kind} recomputes blocks in its backward pass, which a CUDA graph cannot: set '
                'with_cp=False, or omit `cuda_graphs`'
            )
        if 'forward' in vars(module):
            raise UserError(
                f'{kind}: the forward pass of a {type(module).__name__} was replaced, as '
                'activation_checkpointing does, and a CUDA graph needs the original: omit this '
                'setting, or `cuda_graphs`'
            )
    if any(isinstance(module, nn.SyncBatchNorm) for module in part.modules()):
        raise UserError(
            f'{kind} has SyncBatchNorm, whose processes wait for each other, and each process '
            'captures at another time: omit `sync_bn` or `cuda_graphs`'
        )
    if part._compiled_call_impl is not None:
        raise UserError(f'{kind} is compiled: use CompileHook or CUDA graphs, not both')


@HOOKS.register_module()
class CudaGraphHook(Hook):
    """Run parts of a model as CUDA graphs in training (``ptnt train --cuda-graphs``).

    A graph starts all operators of a part at once. It serves one size of image, so there should be
    few: a larger ``pad_size_divisor`` of the data preprocessor. Parts must do the same in each step
    and not wait for the GPU, and the model must not keep their outputs from one step to the next.
    Checkpoints, averaged copies and evaluation are as without this hook.

    Args:
        parts: Names of modules. Those of 'backbone' and 'neck' that the model has, by default.
        after: A size gets a graph when it is seen for this many-th time.
        most: The largest number of graphs of a part.
        capture: How the graphs of all parts are made; by default with torch, each part by itself.

    Raises:
        UserError: when training starts, without a CUDA device, with a model that is divided among
            processes, with recomputed, compiled or synchronised parts, or if the model lacks a
            part.
    """

    # Before the hook that deletes an earlier run: this one may refuse.
    priority = 'VERY_HIGH'

    def __init__(
        self,
        parts: Sequence[str] | None = None,
        after: int = 3,
        most: int = 16,
        capture: Capture | None = None,
    ):
        self.parts, self.after, self.most, self.capture = parts, after, most, capture
        self.graphed: list[GraphedPart] = []

    def before_train(self, runner: Any) -> None:
        """Replace the parts' forward passes."""
        if is_model_wrapper(runner.model) and not isinstance(runner.model, DistributedDataParallel):
            raise UserError(
                f'{type(runner.model).__name__} divides the model among processes, and CUDA graphs '
                'need all of it in each: omit `cuda_graphs`'
            )
        if any(isinstance(hook, CompileHook) for hook in runner.hooks):
            raise UserError('use CompileHook or CUDA graphs, not both')
        model = unwrapped(runner.model)
        names = ('backbone', 'neck') if self.parts is None else self.parts
        modules = dict(model.named_modules())
        found = {name: modules.get(name) for name in names}
        missing = [name for name, part in found.items() if part is None]
        if missing and (self.parts is not None or len(missing) == len(names)):
            known = ', '.join(name for name, _ in model.named_children())
            raise UserError(
                f'CudaGraphHook: {type(model).__name__} has no {missing[0]!r}: expected some of '
                f'{known}'
            )
        self.graphed = [
            GraphedPart(part, self.after, self.most, self.capture)
            for name, part in found.items()
            if name not in missing
        ]
        for part in self.graphed:
            part.install()

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        """Allow each part to run a graph."""
        for part in self.graphed:
            part.start_step()

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Keep gradients that are accumulated."""
        for part in self.graphed:
            part.keep_gradients()

    def after_train(self, runner: Any) -> None:
        """Restore the parts."""
        for part in self.graphed:
            part.remove()
        self.graphed = []
