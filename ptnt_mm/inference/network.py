"""A network to look into: a detector, a segmenter, a classifier or a backbone alone."""

from dataclasses import dataclass

import numpy as np
import torch
from mmengine.config import Config
from torch import Tensor, nn

from ptnt_mm.engine.build import build_model
from ptnt_mm.engine.hosts import HOSTS, scope_of
from ptnt_mm.inference.predictor import Predictor, load_predictor, move
from ptnt_mm.inference.recording import Recording, Size, find_trunk, record
from ptnt_mm.models.pretrained import load_pretrained
from ptnt_mm.utils.errors import UserError


@dataclass(frozen=True)
class Network:
    """A model with its weights, in evaluation mode."""

    model: nn.Module
    predictor: Predictor | None
    """Of a host; None for a classifier or a backbone alone."""

    weights: str
    """Where they come from."""

    def look(self, image: np.ndarray) -> Recording:
        """Run on an image (H, W, 3) uint8, BGR, and keep what passes.

        Raises:
            UserError: if what the network gets of it is smaller than a token.
        """
        pixels, ratio = self._prepare(image)
        patch = getattr(find_trunk(self.model), 'patch', 1)
        if min(pixels.shape[2:]) < patch:
            raise UserError(f'the image is too small: a token has {patch}x{patch} pixels')
        return record(self.model, pixels, ratio)

    def _prepare(self, image: np.ndarray) -> tuple[Tensor, Size]:
        """What the network gets, (1, 3, h, w), and its pixels for each pixel of the image."""
        if self.predictor is not None:
            data = self.predictor.prepare(image)
            x, y = data['data_samples'][0].metainfo.get('scale_factor', (1.0, 1.0))
            return data['inputs'], (y, x)
        pixels = torch.from_numpy(image[..., ::-1].copy()).permute(2, 0, 1)[None] / 127.5 - 1
        return pixels.to(next(self.model.parameters()).device), (1.0, 1.0)


def load_network(config: Config, checkpoint: str | None, device: str | None = None) -> Network:
    """Build what a config names, and load its weights.

    Args:
        config: A whole config of a detector or segmenter, or one whose ``model`` is a classifier
            or a backbone of ours.
        checkpoint: What training saved or, for a classifier or a backbone, its authors published.
            None for the weights that the config's backbone starts from.
        device: Such as 'cpu' or 'cuda:1'; None for the best that is there.

    Raises:
        UserError: if the model is none of these or cannot be built, the checkpoint does not fit
            it, or the device is not there.
    """
    name, predictor = config.filename or 'the config', None
    if scope_of(config) in HOSTS:
        predictor = load_predictor(config, checkpoint, device)
        model = predictor.model
    else:
        model = build_model(config, name).eval()
    trunk = find_trunk(model)
    if predictor is None and trunk is None:
        raise UserError(f'{name}: neither of a host ({", ".join(HOSTS)}) nor a backbone of ours')
    start = getattr(trunk, 'init_cfg', None) or {}
    if checkpoint is None and 'checkpoint' in start:
        trunk.init_weights()
    elif checkpoint is not None and predictor is None:
        load_pretrained(trunk, checkpoint)
    move(model, device)
    return Network(model, predictor, checkpoint or start.get('checkpoint') or 'random numbers')
