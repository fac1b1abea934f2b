"""How much memory a step of training takes, counted on a small image.

What autograd keeps for the backward pass is most of it, and grows with the area of the image: each
convolution keeps a fixed number of values per pixel, and each token as many as any other. So a step
on the CPU, with a small image, tells what an image of any size keeps. Weights, gradients and what
the optimizer remembers come on top.

The short-lived buffers of single operations, what the libraries take for themselves, and the logits
of ``attention='eager'``, which grow faster than the area, are not counted. The heads of regions,
which do not grow with it, are counted as if they did. docs/check.md compares with measurements.
"""

import copy
import io
import re
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.optim import OPTIMIZERS
from mmengine.registry import DATASETS, DefaultScope
from mmengine.structures import BaseDataElement
from torch import Tensor, nn
from torch.nn.functional import interpolate

from ptnt_mm.engine.config import explain_build_error
from ptnt_mm.engine.hosts import scope_of
from ptnt_mm.utils.errors import UserError

_SAMPLES = 4  # images that are taken from the pipeline, evenly spread over the data set
_SIDE = 512  # longer side of the image that is tried, in pixels

_MEMINFO = Path('/proc/meminfo')


class TrainingStep:
    """A model and the largest of a few training images, with its annotations.

    Args:
        config: Its host library is imported.
        model: Is put into training mode.
        images: How many times the image is in a batch.

    Raises:
        UserError: if the data set cannot be built, or its pipeline fails.
    """

    def __init__(self, config: Config, model: nn.Module, images: int):
        self.scope = scope_of(config)
        self.model = model.train()
        self.images = images
        self.sample = max(self._samples(config), key=lambda sample: sample['inputs'][0].numel())
        self.area = self._batch(self.sample)['inputs'][0, 0].numel()

    def loss(self, side: int) -> tuple[Tensor, int]:
        """Run the model on the image, of at most ``side`` pixels, or raise a UserError.

        Returns:
            The sum of all losses, and the area of the padded images together in pixels.
        """
        # A segmenter's preprocessor may pad to a fixed size: scale it down, too.
        preprocessor = self.model.data_preprocessor
        size = getattr(preprocessor, 'size', None)
        if size is not None:
            scale = min(side / max(size), 1.0)
            preprocessor.size = tuple(round(length * scale) for length in size)
        try:
            batch = self._batch(self._shrunk(side))
            with DefaultScope.overwrite_default_scope(self.scope), warnings.catch_warnings():
                warnings.simplefilter('ignore')
                losses = self.model(**batch, mode='loss')
            return self.model.parse_losses(losses)[0], batch['inputs'][:, 0].numel()
        except Exception as error:  # a model may raise anything
            text = str(error).strip().splitlines() or [type(error).__name__]
            raise UserError(f'a step of training fails: {text[0]}') from error
        finally:
            if size is not None:
                preprocessor.size = size

    def _samples(self, config: Config) -> list[dict]:
        try:
            # pycocotools prints its progress.
            quiet = redirect_stdout(io.StringIO())
            with DefaultScope.overwrite_default_scope(self.scope), quiet:
                data_set = DATASETS.build(config.train_dataloader.dataset)
                step = max(len(data_set) // _SAMPLES, 1)
                return [data_set[i] for i in range(0, len(data_set), step)][:_SAMPLES]
        except Exception as error:  # transforms may raise anything
            raise UserError(
                f'the training data set or its pipeline fails: {explain_build_error(error)}'
            ) from error

    def _batch(self, sample: dict) -> dict[str, Any]:
        """A batch, normalised and padded."""
        # Preprocessors pad annotations in place.
        samples = [copy.deepcopy(sample) for _ in range(self.images)]
        return self.model.data_preprocessor(pseudo_collate(samples), training=True)

    def _shrunk(self, side: int) -> dict:
        """The sample, its longer side of so many pixels, or as it is if it is smaller."""
        image, annotated = self.sample['inputs'], copy.deepcopy(self.sample['data_samples'])
        scale = min(side / max(image.shape[1:]), 1.0)
        size = tuple(max(round(length * scale), 1) for length in image.shape[1:])
        smaller = interpolate(image[None].float(), size=size)[0].to(image.dtype)
        annotated.set_metainfo(dict(img_shape=size, pad_shape=size))
        _resize(annotated, size, scale)
        return dict(self.sample, inputs=smaller, data_samples=annotated)


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


def measure_memory(config: Config, step: TrainingStep) -> StepMemory:
    """Take a step with a small image and the config's optimizer, which changes the weights."""
    known = {parameter.untyped_storage().data_ptr() for parameter in step.model.parameters()}
    kept, (loss, tried) = _kept(lambda: step.loss(_SIDE), known)
    loss.backward()
    return StepMemory(_of_weights(config, step.model), kept * step.area // tried, step.area)


def free_memory() -> tuple[str, int | None]:
    """The device that would be trained on, and its free memory in bytes; None if unknown."""
    if torch.cuda.is_available():
        return 'the GPU', torch.cuda.mem_get_info()[0]
    if not _MEMINFO.exists():
        return 'the machine', None
    kilobytes = re.search(r'MemAvailable:\s+(\d+) kB', _MEMINFO.read_text())
    return 'the machine', int(kilobytes[1]) * 1024 if kilobytes else None


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


def _resize(annotated: BaseDataElement, size: tuple[int, int], scale: float) -> None:
    """Bring boxes, objects' masks and masks of classes to a size (height, width), in place."""
    for name in ('gt_instances', 'ignored_instances'):
        if name in annotated:
            instances = annotated.get(name)
            instances.bboxes.rescale_((scale, scale))
            if 'masks' in instances:
                instances.masks = instances.masks.resize(size)
    for name in ('gt_sem_seg', 'gt_edge_map'):
        if name in annotated:
            maps = annotated.get(name)
            resized = {
                key: interpolate(pixels[None].float(), size=size)[0].to(torch.int64)
                for key, pixels in maps.items()
            }
            annotated.set_field(type(maps)(**resized), name)
