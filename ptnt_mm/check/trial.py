"""One step of training on what the config's own pipeline gives."""

import copy
import io
import warnings
from abc import ABC, abstractmethod
from contextlib import redirect_stdout
from typing import Any

from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS, DefaultScope
from mmengine.structures import BaseDataElement
from torch import Tensor, nn
from torch.nn import functional

from ptnt_mm.engine.config import explain_build_error
from ptnt_mm.utils.errors import UserError

_SAMPLES = 4
"""Images that are taken from the pipeline, from all over the data set."""


class Trial(ABC):
    """A model and the largest of a few training images.

    Args:
        config: The config; its host library is imported.
        model: Is put into training mode.
        images: How many times the image is in a batch.

    Raises:
        UserError: if the data set cannot be built, or its pipeline fails.
    """

    def __init__(self, config: Config, model: nn.Module, images: int):
        self.scope = config.get('default_scope') or 'mmengine'
        self.model = model.train()
        self.images = images
        samples = self._samples(config)
        self.sample = max(samples, key=lambda sample: sample['inputs'][0].numel())
        self.area = self._batch(self.sample)['inputs'][0, 0].numel()

    @abstractmethod
    def resize(self, annotated: BaseDataElement, size: tuple[int, int], scale: float) -> None:
        """Bring the annotations of an image to another size.

        Args:
            annotated: Is changed.
            size: (height, width) in pixels.
            scale: By which the image was resized to it.
        """

    def loss(self, side: int) -> tuple[Tensor, int]:
        """Run the model.

        Args:
            side: Longer side of the image, in pixels; a smaller image stays as it is.

        Returns:
            The sum of all losses, and the area of the padded images together in pixels.

        Raises:
            UserError: if the model fails.
        """
        try:
            batch = self._batch(self._shrunk(side))
            with DefaultScope.overwrite_default_scope(self.scope), warnings.catch_warnings():
                warnings.simplefilter('ignore')
                losses = self.model(**batch, mode='loss')
            return self.model.parse_losses(losses)[0], batch['inputs'][:, 0].numel()
        except Exception as error:  # a model may fail in every way there is
            text = str(error).strip().splitlines() or [type(error).__name__]
            raise UserError(f'a step of training fails: {text[0]}') from error

    def _samples(self, config: Config) -> list[dict]:
        try:
            # pycocotools prints what it does.
            quiet = redirect_stdout(io.StringIO())
            with DefaultScope.overwrite_default_scope(self.scope), quiet:
                data_set = DATASETS.build(config.train_dataloader.dataset)
                step = max(len(data_set) // _SAMPLES, 1)
                return [data_set[i] for i in range(0, len(data_set), step)][:_SAMPLES]
        except Exception as error:  # transforms complain in every way there is
            raise UserError(
                f'the training data set or its pipeline fails: {explain_build_error(error)}'
            ) from error

    def _batch(self, sample: dict) -> dict[str, Any]:
        """A batch, normalised and padded."""
        # Preprocessors pad the annotations that they are given.
        samples = [copy.deepcopy(sample) for _ in range(self.images)]
        return self.model.data_preprocessor(pseudo_collate(samples), training=True)

    def _shrunk(self, side: int) -> dict:
        """The sample, its longer side of so many pixels, or as it is if it is smaller."""
        image, annotated = self.sample['inputs'], copy.deepcopy(self.sample['data_samples'])
        scale = min(side / max(image.shape[1:]), 1.0)
        size = tuple(max(round(length * scale), 1) for length in image.shape[1:])
        smaller = functional.interpolate(image[None].float(), size=size)[0].to(image.dtype)
        annotated.set_metainfo(dict(img_shape=size, pad_shape=size))
        self.resize(annotated, size, scale)
        return dict(self.sample, inputs=smaller, data_samples=annotated)
