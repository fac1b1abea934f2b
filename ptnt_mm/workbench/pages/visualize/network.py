"""A network to visualise: a detector, a segmenter, a classifier or only a backbone."""

import logging
from pathlib import Path
from typing import NamedTuple

import torch
from mmengine.config import Config
from mmengine.device import get_device
from torch import Tensor, nn

from ptnt_mm.models.backbone import find_trunk
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.frames import one_line
from ptnt_mm.utils.noise import logging_disabled
from ptnt_mm.weights.pretrained import load_pretrained, pretrained_init
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.build_errors import explained_building
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.inference.image_loaders import PixelLoader
from ptnt_mm.workbench.inference.load import load_predictor, move
from ptnt_mm.workbench.inference.predictor import Image, Predictor
from ptnt_mm.workbench.pages.visualize.recording import Recording, record
from ptnt_mm.workbench.pages.visualize.scene import Prediction, predict


class Network(NamedTuple):
    """A model in evaluation mode."""

    model: nn.Module
    weights: str  # their origin
    task: str | None  # 'detection', 'segmentation' or 'classification'; None for only a backbone
    predictor: Predictor | None
    silence: str = ''  # why there are no predictions

    def predict(self, image: Image) -> Prediction:
        """Predict boxes, a map or classes for a file, or an array (H, W, 3) uint8, BGR."""
        if self.silence:
            return Prediction(note=self.silence)
        return predict(self.predictor, self.task, image)

    def record(self, image: Image) -> Recording:
        """Run on a file, or an array (H, W, 3) uint8, BGR, and record maps and attention.

        Raises:
            UserError: if the image cannot be read, or the network cannot run on one of this size.
        """
        pixels, ratio = self._inputs(image)
        run = getattr(self.model, 'extract_feat', self.model)
        try:
            return record(self.model, run, pixels, ratio)
        except ValueError as error:
            raise UserError(f'the network cannot run on this image: {one_line(error)}') from error

    def _inputs(self, image: Image) -> tuple[Tensor, tuple[float, float]]:
        """The network's input (1, 3, h, w), and its pixels for each pixel of the image (y, x)."""
        if self.predictor is not None:
            data = self.predictor.prepare(image)
            x, y = data['data_samples'][0].metainfo.get('scale_factor', (1.0, 1.0))
            return data['inputs'], (y, x)
        loader, is_file = PixelLoader(), isinstance(image, (str, Path))
        loaded = loader.file(Path(image)) if is_file else loader.array(image)
        pixels = torch.from_numpy(loaded.pixels.copy()).permute(2, 0, 1)
        preprocessor = getattr(self.model, 'data_preprocessor', None)
        # The preprocessors of all hosts have this attribute.
        if getattr(preprocessor, '_enable_normalize', False):
            data = preprocessor(dict(inputs=[pixels], data_samples=None))
            return data['inputs'], (1.0, 1.0)
        # The normalisation of this package's published weights.
        device = next(self.model.parameters()).device
        return pixels.flip(0)[None].to(device) / 127.5 - 1, (1.0, 1.0)


def load_network(
    view: ConfigView,
    checkpoint: str | None,
    device: str | None = None,
    score_thr: float | None = None,
) -> Network:
    """Build the model of a config, and load its weights.

    Args:
        view: Config of a detector, a segmenter or a classifier, or with a backbone or classifier
            of this package as ``model``.
        checkpoint: A training checkpoint or, for one of our classifiers or backbones, a published
            one. None for the weights in ``init_cfg`` of the backbone.
        device: Such as 'cpu' or 'cuda:1'; None for the best available one.
        score_thr: The lowest score of a prediction; None for the default of the task.

    Raises:
        UserError: if the model is none of these or cannot be built, the checkpoint does not fit
            it, or the device is not available.
    """
    config, name, host = view.config, view.name, view.host
    task, predictor, silence = host.task if host else None, None, ''
    if task == 'classification' and 'test_dataloader' not in config:
        task = None
    if task is not None:
        predictor, silence = _load_predictor(config, checkpoint, device, score_thr, task)
    model = predictor.model if predictor else build_model(config, name)
    model.eval()
    trunk = find_trunk(model)
    if trunk is None and not hasattr(model, 'backbone'):
        raise UserError(f'{name}: {type(model).__name__} has no backbone to visualise')
    if trunk is None and task is None:
        raise UserError(
            f'{name}: its model is not a detector, segmenter or classifier of a host, and has no '
            'backbone of this package'
        )
    backbone = model.backbone if trunk is None else trunk
    start = pretrained_init(getattr(backbone, 'init_cfg', None))
    if checkpoint is None and start is not None:
        # MMEngine prints a line for each weight of a backbone that is not of this package.
        level = logging.INFO if trunk is None else logging.NOTSET
        with logging_disabled(level), explained_building(name):
            backbone.init_weights()
    elif checkpoint is not None and (predictor is None or silence):
        load_pretrained(trunk, checkpoint)
    move(model, device or get_device())
    if checkpoint is None:
        checkpoint = start['checkpoint'] if start else 'random initialisation, without a checkpoint'
    return Network(model, str(checkpoint), task, predictor, silence)


def _load_predictor(
    config: Config, checkpoint: str | None, device: str | None, score_thr: float | None, task: str
) -> tuple[Predictor, str]:
    """Load a model with its weights; also return why it cannot predict, or an empty string."""
    untrained = 'There are no predictions without a checkpoint: the head is untrained.'
    try:
        predictor = load_predictor(config, checkpoint, device, score_thr)
        return predictor, '' if checkpoint else untrained
    except CheckpointError:
        if task != 'classification':
            raise
        predictor = load_predictor(config, None, device, score_thr)
        if find_trunk(predictor.model) is None:
            raise
        # The weights of a backbone are enough to visualise a classifier.
        why = f'There are no predictions: {checkpoint} contains no weights of this head.'
        return predictor, why
