"""Base class of the predictors of all hosts, and the functions that load them."""

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
from ptnt_mm.engine.classes import class_name, find_classes
from ptnt_mm.engine.config import require_keys
from ptnt_mm.engine.hosts import HOSTS, import_host
from ptnt_mm.engine.loading import load_whole
from ptnt_mm.utils.colours import class_colours
from ptnt_mm.utils.errors import UserError


class Predictor(ABC):
    """A model with its weights, for one image at a time. Each host has a subclass.

    Args:
        model: A model with weights, on its device; a ``Deployed`` for an exported file.
        dataset_meta: The names and colours of its classes, see ``find_classes``.
        score_thr: The lowest score of a prediction; None for the host's default.

    Attributes:
        classes: Their names, or None.
        dataset_meta: The same names, and their colours.
        score_thr: The value in use; None for tasks without scores.
    """

    pipeline: Callable[[dict], dict]  # gets an image as ``img``; depends on the host

    def __init__(self, model: Any, dataset_meta: dict, score_thr: float | None):
        self.classes = dataset_meta['classes']
        self.dataset_meta = dataset_meta
        self.score_thr = score_thr
        self.model = model

    def name(self, label: int) -> str:
        """The name of a class, or its number without one."""
        return class_name(self.classes, label)

    def prepare(self, image: np.ndarray) -> dict:
        """The network's input for an image, (H, W, 3) uint8, BGR.

        Returns:
            ``inputs`` (1, 3, h, w) on the model's device, and a list with one of ``data_samples``.
        """
        with torch.no_grad():
            data = pseudo_collate([self.pipeline(dict(img=image, img_id=0))])
            return self.model.data_preprocessor(data)

    @abstractmethod
    def predict(self, image: np.ndarray) -> Any:
        """Predict for an image, (H, W, 3) uint8, BGR; return the host's sample, on the CPU."""

    @abstractmethod
    def describe(self, sample: Any) -> dict:
        """Convert a sample to values for JSON."""

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
        config: A complete config: the model, and the test data set with its pipeline.
        checkpoint: A training checkpoint; None keeps random weights.
        device: Such as 'cpu' or 'cuda:1'; None for the best available one.
        score_thr: The lowest score of a prediction; None for the host's default.

    Raises:
        UserError: if the config lacks its model or its test data set, the host cannot be imported
            or is not supported, the model cannot be built, the checkpoint does not fit it, it has
            no scores to compare with ``score_thr``, or the device is not available.
    """
    require_keys(config, ('model', 'test_dataloader'))
    scope, name = config.get('default_scope'), config.filename or 'the config'
    if scope not in HOSTS:
        raise UserError(f'{name} has default_scope={scope!r}: expected one of {", ".join(HOSTS)}')
    model = revert_sync_batchnorm(build_model(config, name)).eval()
    init_default_scope(scope)
    predictor_class, _ = _classes(HOSTS[scope].task)
    with explained_building(name):
        meta = load_whole(model, checkpoint) if checkpoint else {}
        dataset_meta = find_classes(meta, config, model)
        predictor = predictor_class(model, config, dataset_meta, score_thr)
    move(model, device or get_device())
    return predictor


def load_exported(file: Path, score_thr: float | None = None) -> Predictor:
    """Load an exported .onnx or .xml file; ``score_thr`` as in ``load_predictor``.

    Raises a UserError if it is incomplete, or returns neither boxes nor a map, or if its runtime is
    not installed.
    """
    deployed = Deployed(file)
    names, task = deployed.classes, deployed.about.task
    scope = next((scope for scope, host in HOSTS.items() if host.task == task), None)
    if scope is None:
        raise UserError(f'{file} contains only backbone and neck: it returns no boxes or classes')
    import_host(scope)
    init_default_scope(scope)
    _, exported_class = _classes(task)
    meta = dict(classes=None, palette='random')
    if names is not None:
        meta = dict(classes=tuple(names), palette=class_colours(len(names)))
    return exported_class(deployed, meta, score_thr)


def _classes(task: str) -> tuple[type[Predictor], type[Predictor] | None]:
    """The predictors of a task, of a model and of an exported file. Imports the task's host."""
    match task:
        case 'detection':
            from ptnt_mm.inference.detection import Detector, ExportedDetector

            return Detector, ExportedDetector
        case 'segmentation':
            from ptnt_mm.inference.segmentation import ExportedSegmenter, Segmenter

            return Segmenter, ExportedSegmenter
        case 'classification':
            from ptnt_mm.inference.classification import Classifier

            return Classifier, None


def fill_sample(sample: Any, found: Detections | np.ndarray) -> Any:
    """Put the output of an exported file into a sample of the host; return the sample."""
    if isinstance(found, Detections):
        boxes, scores, labels, masks = found
        fields = dict(bboxes=boxes, scores=scores, labels=labels, masks=masks)
        known = {name: torch.from_numpy(x) for name, x in fields.items() if x is not None}
        sample.pred_instances = InstanceData(**known)
    else:
        sample.pred_sem_seg = PixelData(data=torch.from_numpy(found.astype(np.int64))[None])
    return sample


def move(model: nn.Module, device: str) -> None:
    """Move a model, or raise a UserError if the device is not available."""
    try:
        model.to(device)
    except (AssertionError, RuntimeError) as error:
        raise UserError(f'device {device!r} cannot be used here: {error}') from error
