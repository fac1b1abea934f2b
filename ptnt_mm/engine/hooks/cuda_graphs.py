"""Run parts of a model as CUDA graphs, one graph for each size of image."""

import copy
import gc
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.model import is_model_wrapper
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from ptnt_mm.config.build import unwrapped
from ptnt_mm.config.causes import one_line
from ptnt_mm.engine.hooks.compiling import CompileHook
from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.errors import UserError

IDLE = 500
"""A graph makes room for another size once it was not used for this many steps of training, or
calls in evaluation. If more sizes recur than there is room for, those that came first keep theirs,
and nothing is captured again."""


class TorchCapture:
    """Capture with ``torch.cuda.make_graphed_callables``.

    All graphs of a part share a pool of memory: only one of them runs at a time. Without gradients,
    only a forward pass is captured.

    Attributes:
        held: The share of the device's memory that the graphs take, from 0 to 1.

    Raises:
        UserError: if there is no CUDA device.
    """

    def __init__(self):
        require_cuda('CudaGraphHook')
        self.pool, self.held = torch.cuda.graph_pool_handle(), 0.0

    def __call__(self, function: Callable, samples: tuple[Tensor, ...]) -> Callable:
        """A function as a graph that computes in the memory of ``samples``."""
        with torch.cuda.device(samples[0].device):
            before = self._reserved()
            graph = torch.cuda.make_graphed_callables(
                function, samples, allow_unused_input=True, pool=self.pool
            )
            self.held += max(self._reserved() - before, 0.0)
        return graph

    def clear(self) -> None:
        """Give memory back once no graph is left; the next one gets a new pool."""
        gc.collect()  # torch's graphs are in cycles of references
        self.pool, self.held = torch.cuda.graph_pool_handle(), 0.0

    def _reserved(self) -> float:
        """The share of memory in use; what torch only keeps for later is given back first."""
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved() / torch.cuda.mem_get_info()[1]


class GraphedPart:
    """The forward pass of a module, as a graph for each size that recurs.

    Takes the place of the module's ``forward``. There are graphs for training and for evaluation
    without gradients, whose outputs are copied. Unusual arguments, rare sizes and further calls in
    a step of training run as before: a second call would overwrite what the first one's backward
    pass needs.

    Args:
        part: The module. Its arguments are tensors, or lists and tuples of them.
        after: How often a size is seen until it gets a graph.
        most: The largest number of graphs.
        memory: Once graphs take this share of the device's memory, another size gets one only in
            place of one that is idle.
        capture: How graphs are made; by default with torch.

    Raises:
        UserError: without a CUDA device, or if the part cannot be a graph.
    """

    def __init__(
        self,
        part: nn.Module,
        after: int = 3,
        most: int = 16,
        memory: float = 0.25,
        capture: TorchCapture | None = None,
    ):
        _require_original(part)
        self.part, self.after, self.most, self.memory = part, after, most, memory
        self.capture = TorchCapture() if capture is None else capture
        self.parameters = _readers(part, part.named_parameters())
        self.buffers = _readers(part, part.named_buffers())
        self.addresses: list[int] = []
        self.graphs: OrderedDict[tuple, Callable | None] = OrderedDict()
        self.used_at: dict[tuple, int] = {}
        self.seen: Counter[tuple] = Counter()
        self.steps: Counter[bool] = Counter()  # of training, and calls in evaluation
        self.is_used = False

    def __deepcopy__(self, memo: dict) -> Callable:
        """The forward pass of a copied module, which runs no graphs."""
        return partial(type(self.part).forward, copy.deepcopy(self.part, memo))

    def install(self) -> None:
        """Replace the module's forward pass."""
        self.part.forward = self

    def remove(self) -> None:
        """Restore the module's forward pass, and free all graphs."""
        del self.part.forward
        self._forget()

    def start_step(self) -> None:
        """Allow one graph to run; what it returned in the last step is no longer needed."""
        self.steps[True] += 1
        self.is_used = False

    def end_step(self) -> None:
        """Copy gradients that the next step adds to: the graph would overwrite them.

        Autograd keeps the first gradient of a parameter without copying it, in the graph's memory.
        """
        if self.is_used:
            for parameter in self.part.parameters():
                if parameter.grad is not None:
                    parameter.grad = parameter.grad.clone()
        self.is_used = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As the module's forward pass."""
        inputs, structure = tree_flatten(args)
        if self.is_used or kwargs or not self._is_usual(inputs):
            return self._plain(*args, **kwargs)
        trains, parameters = self.part.training, self._followed()
        if not trains:
            self.steps[False] += 1
        # As text: in torch 2.6, structures cannot be hashed.
        key = (trains, str(structure), *_circumstances(inputs, parameters))
        self.seen[key] += 1
        if key not in self.graphs and self.seen[key] >= self.after and self._has_room():
            self.graphs[key] = self._captured(inputs, structure, parameters)
        if key not in self.graphs:
            return self._plain(*args)
        # Also where memory did not suffice, so that it is not tried again and again.
        self.graphs.move_to_end(key)
        self.used_at[key] = self.steps[trains]
        graph = self.graphs[key]
        if graph is None:
            return self._plain(*args)
        self.is_used = trains
        outputs = graph(*inputs, *parameters)
        # The next run of any graph of this part overwrites them.
        return outputs if trains else tree_map(torch.clone, outputs)

    def _is_usual(self, inputs: list) -> bool:
        """Whether tensors come in training with gradients, or in evaluation without."""
        tensors = bool(inputs) and all(isinstance(each, Tensor) for each in inputs)
        same = self.part.training == torch.is_grad_enabled()
        return tensors and same and not torch.is_inference_mode_enabled()

    def _followed(self) -> list[Tensor]:
        """The parameters. If a weight has moved, all graphs are dropped: they read its old place.

        New values that are copied into the old ones, as by ``load_state_dict`` and averaging hooks,
        move nothing.
        """
        parameters = [read() for read in self.parameters.values()]
        buffers = (read() for read in self.buffers.values())
        addresses = [tensor.data_ptr() for tensor in (*parameters, *buffers)]
        if addresses != self.addresses:
            self.addresses = addresses
            self._forget()
        return parameters

    def _forget(self) -> None:
        """Drop all graphs, and the sizes that were seen."""
        had_graphs = bool(self.graphs)
        for known in (self.graphs, self.used_at, self.seen):
            known.clear()
        if had_graphs:
            self.capture.clear()

    def _plain(self, *args: Any, **kwargs: Any) -> Any:
        return type(self.part).forward(self.part, *args, **kwargs)

    def _has_room(self) -> bool:
        """Whether another graph fits. One that is idle is dropped for it."""
        if not self.graphs or (len(self.graphs) < self.most and self.capture.held < self.memory):
            return True
        for key in self.graphs:  # the one that was not used for longest comes first
            if self.steps[key[0]] - self.used_at[key] >= IDLE:
                del self.graphs[key], self.used_at[key], self.seen[key]
                if not self.graphs:
                    self.capture.clear()
                return True
        return False

    def _captured(
        self, inputs: list[Tensor], structure: Any, parameters: list[Tensor]
    ) -> Callable | None:
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
        samples = (*copies, *map(_like, parameters))
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
                f'({one_line(error)}): omit `cuda_graphs`'
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


def _readers(
    part: nn.Module, tensors: Iterable[tuple[str, Tensor]]
) -> dict[str, Callable[[], Tensor]]:
    """From a name to what reads this tensor, even if another one takes its place."""
    names = [(name, *name.rpartition('.')[::2]) for name, _ in tensors]
    return {name: partial(getattr, part.get_submodule(owner), own) for name, owner, own in names}


def _like(tensor: Tensor) -> Tensor:
    """The same memory, as another leaf of autograd."""
    return tensor.detach().requires_grad_(tensor.requires_grad)


def _circumstances(inputs: list[Tensor], parameters: list[Tensor]) -> tuple:
    """All that a graph takes for granted, besides its module."""
    kind = inputs[0].device.type
    shapes = tuple((each.shape, each.dtype, each.requires_grad) for each in inputs)
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    return shapes, dtype, tuple(parameter.requires_grad for parameter in parameters)


def require_cuda(mode: str, device: str = 'cuda') -> None:
    """Raise a UserError if a mode is not for this device, or if torch finds no CUDA device."""
    if not device.startswith('cuda'):
        raise UserError(f'{mode} needs a CUDA device, not {device!r}: omit it')
    if not torch.cuda.is_available():
        raise UserError(f'{mode} needs a CUDA device, and torch finds none: omit it')


def _require_original(part: nn.Module) -> None:
    """Raise a UserError if the part, or one in it, is not called as it was written."""
    kind = type(part).__name__
    for module in part.modules():
        if 'forward' in vars(module):
            raise UserError(
                f'{kind}: the forward pass of a {type(module).__name__} was replaced, as '
                'activation_checkpointing does, and a CUDA graph needs the original: omit this '
                'setting, or `cuda_graphs`'
            )
    if part._compiled_call_impl is not None:
        raise UserError(f'{kind} is compiled: use CompileHook or CUDA graphs, not both')


def _require_trainable(part: nn.Module) -> None:
    """Raise a UserError if a step of training cannot be a graph."""
    kind = type(part).__name__
    if any(getattr(module, 'with_cp', False) for module in part.modules()):
        raise UserError(
            f'{kind} recomputes blocks in its backward pass, which a CUDA graph cannot: set '
            'with_cp=False, or omit `cuda_graphs`'
        )
    if any(isinstance(module, nn.SyncBatchNorm) for module in part.modules()):
        raise UserError(
            f'{kind} has SyncBatchNorm, whose processes wait for each other, and each process '
            'captures at another time: omit `sync_bn` or `cuda_graphs`'
        )


def graph_parts(
    model: nn.Module,
    parts: Sequence[str] | None = None,
    after: int = 3,
    most: int = 16,
    memory: float = 0.25,
    capture: TorchCapture | None = None,
) -> list[GraphedPart]:
    """Run parts of a model, wrapped or not, as CUDA graphs from now on.

    The other arguments are those of :class:`CudaGraphHook`.

    Raises:
        UserError: without a CUDA device, if the model is divided among processes or lacks a part,
            or if a part cannot be a graph.
    """
    if is_model_wrapper(model) and not isinstance(model, DistributedDataParallel):
        raise UserError(
            f'{type(model).__name__} divides the model among processes, and CUDA graphs need all '
            'of it in each: omit `cuda_graphs`'
        )
    model = unwrapped(model)
    names = ('backbone', 'neck') if parts is None else parts
    modules = dict(model.named_modules())
    found = {name: modules[name] for name in names if modules.get(name) is not None}
    missing = [name for name in names if name not in found]
    if missing and (parts is not None or not found):
        known = ', '.join(name for name, _ in model.named_children())
        raise UserError(
            f'`cuda_graphs`: {type(model).__name__} has no {missing[0]!r}: expected some of {known}'
        )
    graphed = [GraphedPart(part, after, most, memory, capture) for part in found.values()]
    for part in graphed:
        part.install()
    return graphed


@HOOKS.register_module()
class CudaGraphHook(Hook):
    """Run parts of a model as CUDA graphs in a run of training (``ptnt train --cuda-graphs``).

    A graph starts all operators of a part at once. It serves one size of image, so there should be
    few: a larger ``pad_size_divisor`` of the data preprocessor. Parts must do the same in each step
    and not wait for the GPU, and the model must not keep their outputs from one step to the next.
    Evaluation has its own graphs, whose memory training cannot use. Checkpoints and averaged copies
    are as without this hook.

    Args:
        parts: Names of modules. Those of 'backbone' and 'neck' that the model has, by default.
        after: How often a size is seen until it gets a graph.
        most: The largest number of graphs of a part, those of evaluation included.
        memory: Once the graphs of a part take this share of the GPU's memory, another size gets one
            only in place of one that is idle.
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
        memory: float = 0.25,
        capture: TorchCapture | None = None,
    ):
        self.settings = (parts, after, most, memory, capture)
        self.graphed: list[GraphedPart] = []

    def before_train(self, runner: Any) -> None:
        """Replace the parts' forward passes."""
        if any(isinstance(hook, CompileHook) for hook in runner.hooks):
            raise UserError('use CompileHook or CUDA graphs, not both')
        self.graphed = graph_parts(runner.model, *self.settings)
        for part in self.graphed:
            _require_trainable(part.part)

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        """Allow each part to run a graph."""
        for part in self.graphed:
            part.start_step()

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Keep gradients that are accumulated."""
        for part in self.graphed:
            part.end_step()

    def after_train(self, runner: Any) -> None:
        """Restore the parts."""
        for part in self.graphed:
            part.remove()
        self.graphed = []
