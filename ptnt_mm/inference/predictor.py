"""A model that looks at images: what all hosts share, and where a host's own part is."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.device import get_device
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import init_default_scope
from mmengine.structures import InstanceData, PixelData
from torch import nn

from ptnt_mm.deploy import Deployed, Detections
from ptnt_mm.engine.build import build_model, explained_building
from ptnt_mm.engine.config import require_keys
from ptnt_mm.engine.hosts import HOSTS, import_host
from ptnt_mm.engine.loading import load_whole
from ptnt_mm.inference.classes import class_name, find_classes
from ptnt_mm.utils.colours import class_colours
from ptnt_mm.utils.errors import UserError


class Predictor(ABC):
    """A model with its weights, for one image at a time. Every host has its own.

    Args:
        model: With its weights, where it shall run; a ``Deployed`` for an exported file.
        dataset_meta: The names and colours of its classes, see ``find_classes``.
        score_thr: What has a lower score is left out; None for the host's own value.

    Attributes:
        classes: Their names, or None.
        dataset_meta: The same names, and their colours.
        score_thr: The value that is used; None where there are no scores.
    """

    pipeline: Callable[[dict], dict]  # gets an image as ``img``; every host has its own

    def __init__(self, model: Any, dataset_meta: dict, score_thr: float | None):
        self.classes = dataset_meta['classes']
        self.dataset_meta = dataset_meta
        self.score_thr = score_thr
        self.model = model

    def name(self, label: int) -> str:
        """The name of a class, or its number where there is none."""
        return class_name(self.classes, label)

    def prepare(self, image: np.ndarray) -> dict:
        """What the network gets of an image, (H, W, 3) uint8, BGR.

        Returns:
            ``inputs`` (1, 3, h, w) on the model's device, and a list with one of ``data_samples``.
        """
        with torch.no_grad():
            data = pseudo_collate([self.pipeline(dict(img=image, img_id=0))])
            return self.model.data_preprocessor(data)

    @abstractmethod
    def predict(self, image: np.ndarray) -> Any:
        """Look at an image, (H, W, 3) uint8, BGR; the host's sample, on the CPU."""

    @abstractmethod
    def describe(self, sample: Any) -> dict:
        """What a sample says, as JSON takes it."""

    @abstractmethod
    def draw(self, image: np.ndarray, sample: Any) -> np.ndarray:
        """Draw a sample on its image; both (H, W, 3) uint8, BGR."""


def load_predictor(
    config: Config,
    checkpoint: str | None,
    device: str | None = None,
    score_thr: float | None = None,
) -> Predictor:
    """Build a config's model and load all of its weights.

    Args:
        config: A whole config: the model, and the test data set with its pipeline.
        checkpoint: What training saved; None leaves the weights as they were drawn.
        device: Such as 'cpu' or 'cuda:1'; None for the best that is there.
        score_thr: What has a lower score is left out; None for the host's own value.

    Raises:
        UserError: if the config lacks its model or its test data set, the host cannot be imported
            or is not known here, the model cannot be built, the checkpoint does not fit it, it has
            no scores to compare with ``score_thr``, or the device is not there.
    """
    require_keys(config, ('model', 'test_dataloader'))
    scope, name = config.get('default_scope'), config.filename or 'the config'
    if scope not in HOSTS:
        raise UserError(f'{name} has default_scope={scope!r}: expected one of {", ".join(HOSTS)}')
    model = revert_sync_batchnorm(build_model(config, name)).eval()
    init_default_scope(scope)
    host = HOSTS[scope]
    # A file of this folder, which imports the host library.
    module = importlib.import_module(f'{__package__}.{host.task}')
    with explained_building(name):
        meta = load_whole(model, checkpoint) if checkpoint else {}
        dataset_meta = find_classes(meta, config, model)
        predictor = getattr(module, host.predictor)(model, config, dataset_meta, score_thr)
    move(model, device or get_device())
    return predictor


def load_exported(file: Path, score_thr: float | None = None) -> Predictor:
    """Load an .onnx or .xml file of ``ptnt export``; ``score_thr`` as of ``load_predictor``.

    Raises a UserError if it is not whole, or gives neither boxes nor a map, or if its runtime is
    not installed.
    """
    deployed = Deployed(file)
    names, task = deployed.classes, deployed.about.task
    scope = next((scope for scope, host in HOSTS.items() if host.task == task), None)
    if scope is None:
        raise UserError(f'{file} holds backbone and neck alone: it gives no boxes and no classes')
    import_host(scope)
    init_default_scope(scope)
    module = importlib.import_module(f'{__package__}.{task}')
    meta = dict(classes=None, palette='random')
    if names is not None:
        meta = dict(classes=tuple(names), palette=class_colours(len(names)))
    return getattr(module, f'Exported{HOSTS[scope].predictor}')(deployed, meta, score_thr)


def fill_sample(sample: Any, found: Detections | np.ndarray) -> Any:
    """Put what an exported file found into a sample of the host, which is returned."""
    if isinstance(found, Detections):
        boxes, scores, labels, masks = found
        fields = dict(bboxes=boxes, scores=scores, labels=labels, masks=masks)
        known = {name: torch.from_numpy(x) for name, x in fields.items() if x is not None}
        sample.pred_instances = InstanceData(**known)
    else:
        sample.pred_sem_seg = PixelData(data=torch.from_numpy(found.astype(np.int64))[None])
    return sample


def move(model: nn.Module, device: str) -> None:
    """Move a model, or raise a UserError if the device is not there."""
    try:
        model.to(device)
    except (AssertionError, RuntimeError) as error:
        raise UserError(f'device {device!r} cannot be used here: {error}') from error
