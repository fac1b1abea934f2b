"""How much memory a step of training takes, counted on a small image.

What autograd keeps for the backward pass is most of it, and grows with the area of the image: each
convolution and each token keeps so many numbers. So a step on the CPU, with a small image, tells
what an image of any size keeps. Weights, gradients and what the optimizer remembers come on top.

Not counted are the short-lived buffers of single operations, what the libraries take for
themselves, and the logits of ``attention='eager'``, which grow faster than the area. The heads of
regions, which do not grow with it, are counted as if they did. docs/check.md compares with
measurements.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.optim import OPTIMIZERS
from torch import Tensor, nn

from ptnt_mm.check.training_step import TrainingStep
from ptnt_mm.utils.findings import Finding, note, sound, warning
from ptnt_mm.utils.text import binary

_SIDE = 512  # longer side of the image that is tried, in pixels

_MEMINFO = Path('/proc/meminfo')


@dataclass(frozen=True)
class StepMemory:
    """Bytes that a step of training takes.

    Attributes:
        weights: Of the model: weights, gradients, and what the optimizer remembers.
        image: What autograd keeps for one image.
        area: Of that image, padded, in pixels.
    """

    weights: int
    image: int
    area: int

    def of_batch(self, images: int) -> int:
        """Bytes for a batch."""
        return self.weights + self.image * images


def measure_memory(config: Config, step: TrainingStep) -> StepMemory:
    """Take a step of training, which changes the weights of its model.

    Args:
        config: Names the optimizer.
        step: With a small image in place of one of its full area.
    """
    known = {parameter.untyped_storage().data_ptr() for parameter in step.model.parameters()}
    kept, (loss, tried) = _kept(lambda: step.loss(_SIDE), known)
    loss.backward()
    return StepMemory(_of_weights(config, step.model), kept * step.area // tried, step.area)


def check_memory(config: Config, step: StepMemory) -> Iterator[Finding]:
    """Compare the estimate for a batch with what the device has."""
    images = config.train_dataloader.get('batch_size', 1)
    needed = step.of_batch(images)
    what = (
        f'a step takes about {binary(needed)}: {binary(step.weights)} for weights, gradients '
        f'and optimizer, {images} x {binary(step.image)} for images of {step.area / 1e6:.2f} '
        'megapixels in 32 bits'
    )
    device, free = _free()
    if free is None:
        yield note('Memory', f'{what}; this system does not say what it has')
    elif needed > free:
        advice = 'lower train_dataloader.batch_size, set model.backbone.with_cp=True, or use --amp'
        yield warning('Memory', f'{what}; {device} has {binary(free)} free', advice)
    else:
        yield sound('Memory', f'{what}; {device} has {binary(free)} free')


def _kept(run: Callable[[], Any], known: set[int]) -> tuple[int, Any]:
    """Bytes that autograd keeps of a run, beside storages that are known; and its result."""
    storages: dict[int, int] = {}

    def remember(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(remember, lambda tensor: tensor):
        result = run()
    return sum(storages.values()), result


def _of_weights(config: Config, model: nn.Module) -> int:
    """Bytes of weights and gradients, and of what the optimizer remembers after a step."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = OPTIMIZERS.build(dict(config.optim_wrapper.optimizer, params=trained))
    optimizer.step()
    states = [state for entry in optimizer.state.values() for state in entry.values()]
    gradients = [parameter.grad for parameter in trained]
    tensors = [*model.parameters(), *gradients, *states]
    return sum(tensor.nbytes for tensor in tensors if isinstance(tensor, Tensor))


def _free() -> tuple[str, int | None]:
    """The device that would be trained on, and its free memory in bytes; None if unknown."""
    if torch.cuda.is_available():
        return 'the GPU', torch.cuda.mem_get_info()[0]
    if not _MEMINFO.exists():
        return 'the machine', None
    kilobytes = re.search(r'MemAvailable:\s+(\d+) kB', _MEMINFO.read_text())
    return 'the machine', int(kilobytes[1]) * 1024 if kilobytes else None
