"""One step of training on one image, as the config's own pipeline gives it."""

import io
import warnings
from contextlib import redirect_stdout
from typing import Any

import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS, MODELS, DefaultScope
from torch import Tensor, nn
from torch.nn import functional

from ptnt_mm.engine.config import explain_build_error
from ptnt_mm.errors import UserError

_SAMPLES = 4
"""Images that are taken from the pipeline, from all over the data set."""


def build_model(config: Config) -> nn.Module:
    """Build the model, with random weights.

    Raises:
        UserError: if that fails.
    """
    try:
        with DefaultScope.overwrite_default_scope(config.get('default_scope') or 'mmengine'):
            return MODELS.build(config.model)
    except UserError:
        raise
    except Exception as error:  # constructors complain in every way there is
        raise UserError(f'the model cannot be built: {explain_build_error(error)}') from error


class Trial:
    """A model and the largest of a few training images.

    Args:
        config: The config; its host library is imported.
        model: Is put into training mode.

    Raises:
        UserError: if the data set cannot be built, or its pipeline fails.
    """

    def __init__(self, config: Config, model: nn.Module):
        self.scope = config.get('default_scope') or 'mmengine'
        self.model = model.train()
        samples = self._samples(config)
        self.sample = max(samples, key=lambda sample: sample['inputs'][0].numel())
        self.area = self._batch(self.sample)['inputs'][0, 0].numel()

    def loss(self, side: int) -> tuple[Tensor, int]:
        """Run the model.

        Args:
            side: Longer side of the image, in pixels; a smaller image stays as it is.

        Returns:
            The sum of all losses, and the area of the padded image in pixels.

        Raises:
            UserError: if the model fails.
        """
        try:
            batch = self._batch(_shrunk(self.sample, side))
            with DefaultScope.overwrite_default_scope(self.scope), warnings.catch_warnings():
                # Libraries warn of each other's future; training shows that soon enough.
                warnings.simplefilter('ignore')
                losses = self.model(**batch, mode='loss')
            return self.model.parse_losses(losses)[0], batch['inputs'][0, 0].numel()
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
        """A batch of one, normalised and padded."""
        return self.model.data_preprocessor(pseudo_collate([sample]), training=True)


def _shrunk(sample: dict, side: int) -> dict:
    """A sample whose longer side is of so many pixels, or as it is if it is smaller."""
    image, annotated = sample['inputs'], sample['data_samples'].clone()
    scale = min(side / max(image.shape[1:]), 1.0)
    size = tuple(max(round(length * scale), 1) for length in image.shape[1:])
    smaller = functional.interpolate(image[None].float(), size=size)[0].to(image.dtype)
    annotated.set_metainfo(dict(img_shape=size, pad_shape=size))
    for name in ('gt_instances', 'ignored_instances'):
        if name in annotated:
            instances = annotated.get(name)
            instances.bboxes = instances.bboxes.clone()
            instances.bboxes.rescale_((scale, scale))
            if 'masks' in instances:
                instances.masks = instances.masks.resize(size)
    if 'gt_sem_seg' in annotated:
        maps = annotated.gt_sem_seg.sem_seg[None].float()
        annotated.gt_sem_seg.set_data(
            dict(sem_seg=functional.interpolate(maps, size=size)[0].to(torch.int64))
        )
    return dict(sample, inputs=smaller, data_samples=annotated)
