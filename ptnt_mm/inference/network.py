"""A network to look into: a detector, a segmenter, a classifier or a backbone alone."""

from typing import NamedTuple

import numpy as np
import torch
from mmengine.config import Config
from mmengine.device import get_device
from torch import nn

from ptnt_mm.engine.build import build_model
from ptnt_mm.engine.hosts import HOSTS, scope_of
from ptnt_mm.inference.predictor import Predictor, load_predictor, move
from ptnt_mm.inference.recording import Recording, find_trunk, record
from ptnt_mm.models.pretrained import load_pretrained, pretrained_init
from ptnt_mm.utils.errors import UserError


class Network(NamedTuple):
    """A model in evaluation mode."""

    model: nn.Module
    weights: str  # where they come from
    predictor: Predictor | None  # a detector's or segmenter's

    def look(self, image: np.ndarray) -> Recording:
        """Run on an image (H, W, 3) uint8, BGR, and keep what passes.

        Raises a UserError if it is smaller than a token.
        """
        if self.predictor is not None:
            data = self.predictor.prepare(image)
            x, y = data['data_samples'][0].metainfo.get('scale_factor', (1.0, 1.0))
            return record(self.model, self.model.extract_feat, data['inputs'], (y, x))
        pixels = torch.from_numpy(image[..., ::-1].copy()).permute(2, 0, 1)[None] / 127.5 - 1
        device = next(self.model.parameters()).device
        try:
            return record(self.model, self.model, pixels.to(device), (1.0, 1.0))
        except ValueError as error:
            raise UserError(f'an image cannot be looked at: {error}') from error


def load_network(config: Config, checkpoint: str | None, device: str | None = None) -> Network:
    """Build what a config names, and load its weights.

    Args:
        config: Of a detector or segmenter, of a classifier with a backbone of ours, or with such a
            backbone alone as ``model``.
        checkpoint: What training saved or, for a classifier or a backbone, its authors published.
            None for the weights that the config's backbone starts from.
        device: Such as 'cpu' or 'cuda:1'; None for the best that is there.

    Raises:
        UserError: if the model is none of these or cannot be built, the checkpoint does not fit
            it, or the device is not there.
    """
    name, predictor = config.filename or 'the config', None
    host = HOSTS.get(scope_of(config))
    # A classifier's test pipeline crops: its maps would not lie on the image.
    if host is not None and host.task != 'classification':
        predictor = load_predictor(config, checkpoint, device)
    model = predictor.model if predictor else build_model(config, name).eval()
    trunk = find_trunk(model)
    start = pretrained_init(getattr(trunk, 'init_cfg', None))
    if trunk is None and predictor is None:
        raise UserError(
            f'{name}: its model is no detector or segmenter, and has no backbone of ours'
        )
    if checkpoint is None and start is not None:
        trunk.init_weights()
    elif checkpoint is not None and predictor is None:
        load_pretrained(trunk, checkpoint)
    move(model, device or get_device())
    if checkpoint is None:
        checkpoint = start['checkpoint'] if start else 'random numbers: no checkpoint was given'
    return Network(model, str(checkpoint), predictor)
