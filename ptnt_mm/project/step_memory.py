"""Measure the memory of a training step by taking one.

Most of it is kept by autograd for the backward pass and grows with the number of images. Weights,
gradients and the optimizer's state are added. Short-lived buffers of single operations and memory
that libraries allocate are not counted.
"""

import copy
import io
import re
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.optim import OPTIMIZERS
from mmengine.registry import DATASETS, DefaultScope
from torch import Tensor, nn

from ptnt_mm.config.build import build_model

_SAMPLES = 4  # training images, evenly spread over the data set; the largest is used

_MEMINFO = Path('/proc/meminfo')


@dataclass(frozen=True)
class StepMemory:
    """Memory of a training step in bytes.

    Attributes:
        weights: Weights, their gradients and the optimizer's state.
        image: Memory for each image of the batch.
    """

    weights: int
    image: int


def measure_memory(config: Config) -> StepMemory:
    """Take a training step on the CPU with one image, or two if BatchNorm needs them.

    Raises:
        Exception: if the data set, its pipeline or the model fails.
    """
    model = build_model(config).train()
    images = 2 if config.default_scope == 'mmseg' else 1
    known = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, int] = {}

    def remember(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with (
        DefaultScope.overwrite_default_scope(config.default_scope),
        warnings.catch_warnings(action='ignore'),
        redirect_stdout(io.StringIO()),  # pycocotools prints its progress
    ):
        data_set = DATASETS.build(copy.deepcopy(config.train_dataloader.dataset))
        chosen = range(0, len(data_set), max(len(data_set) // _SAMPLES, 1))
        sample = max((data_set[i] for i in chosen), key=lambda sample: sample['inputs'].numel())
        # Preprocessors pad annotations in place.
        batch = pseudo_collate([copy.deepcopy(sample) for _ in range(images)])
        with torch.autograd.graph.saved_tensors_hooks(remember, lambda tensor: tensor):
            losses = model(**model.data_preprocessor(batch, True), mode='loss')
        model.parse_losses(losses)[0].backward()
        return StepMemory(_of_weights(config, model), sum(kept.values()) // images)


def free_memory() -> tuple[str, int | None]:
    """The device that training would use, and its free memory in bytes; None if unknown."""
    if torch.cuda.is_available():
        return 'the GPU', torch.cuda.mem_get_info()[0]
    if not _MEMINFO.exists():
        return 'the machine', None
    kilobytes = re.search(r'MemAvailable:\s+(\d+) kB', _MEMINFO.read_text())
    return 'the machine', int(kilobytes[1]) * 1024 if kilobytes else None


def _of_weights(config: Config, model: nn.Module) -> int:
    """Take an optimizer step; return the bytes of weights, gradients and its state."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = OPTIMIZERS.build(dict(config.optim_wrapper.optimizer, params=trained))
    optimizer.step()
    states = [state for entry in optimizer.state.values() for state in entry.values()]
    tensors = [*model.parameters(), *(parameter.grad for parameter in trained), *states]
    return sum(tensor.nbytes for tensor in tensors if isinstance(tensor, Tensor))
