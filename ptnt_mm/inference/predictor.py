"""Base class of the predictors of all hosts."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from mmcv.transforms import Compose
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.structures import InstanceData, PixelData

from ptnt_mm.deploy import Detections
from ptnt_mm.drawing.class_drawings import class_name
from ptnt_mm.engine.data_files import data_sets
from ptnt_mm.engine.settings import kind_of


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
        highest_below: The highest score so far that was too low for a prediction; None without any.
    """

    pipeline: Callable[[dict], dict]  # gets an image as ``img``; depends on the host

    def __init__(self, model: Any, dataset_meta: dict, score_thr: float | None):
        self.classes = dataset_meta['classes']
        self.dataset_meta = dataset_meta
        self.score_thr = score_thr
        self.highest_below: float | None = None
        self.model = model

    @property
    def limit(self) -> str:
        """The setting, with its value, below which scores are too low."""
        return f'--score-thr {self.score_thr}'

    def leave_out(self, scores: torch.Tensor) -> None:
        """Remember the highest of scores (n,) that are too low."""
        if len(scores):
            self.highest_below = max(float(scores.max()), self.highest_below or 0.0)

    def name(self, label: int) -> str:
        """The name of a class, or its number without one."""
        return class_name(self.classes, label)

    def prepare(self, image: np.ndarray) -> dict:
        """The network's input for an image, (H, W, 3) uint8, BGR.

        Returns:
            ``inputs`` (1, 3, h, w) on the model's device, and a list with one of ``data_samples``.
        """
        with torch.no_grad():
            return self.model.data_preprocessor(self._batch(image))

    def run(self, image: np.ndarray) -> Any:
        """The model's sample for an image, (H, W, 3) uint8, BGR, on the CPU."""
        with torch.no_grad():
            (sample,) = self.model.test_step(self._batch(image))
        return sample.cpu()

    def _batch(self, image: np.ndarray) -> dict:
        size = image.shape[:2]
        data = dict(img=image, img_id=0, img_shape=size, ori_shape=size)
        return pseudo_collate([self.pipeline(data)])

    @abstractmethod
    def predict(self, image: np.ndarray) -> Any:
        """Predict for an image, (H, W, 3) uint8, BGR; return the host's sample, on the CPU."""

    @abstractmethod
    def describe(self, sample: Any) -> dict:
        """Convert a sample to values for JSON."""

    @abstractmethod
    def draw(self, image: np.ndarray, sample: Any) -> np.ndarray:
        """Draw a sample on its image; both (H, W, 3) uint8, BGR."""


def array_pipeline(config: Config, loader: str | None) -> Compose:
    """The test pipeline of a config for an image as ``img``, and without annotations.

    Args:
        config: A config with a test data set.
        loader: The host's transform that takes such an image where others load a file; None if it
            has none.
    """
    steps = [s for s in next(data_sets(config, 'test')).pipeline if kind_of(s) != 'LoadAnnotations']
    if reads_files(config):
        steps[:1] = [] if loader is None else [dict(steps[0], type=loader)]
    return Compose(steps)


def reads_files(config: Config) -> bool:
    """Whether the test pipeline loads image files; that of CIFAR's data set gets RGB arrays."""
    steps = next(data_sets(config, 'test')).pipeline
    return bool(steps) and kind_of(steps[0]).startswith('Load')


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
