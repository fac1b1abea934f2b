"""Base class of the predictors of all hosts."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmengine.structures import InstanceData, PixelData

from ptnt_mm.deploy import Detections
from ptnt_mm.deploy.decoding import Range
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.tiles import Tiling
from ptnt_mm.workbench.drawing.class_drawings import class_name
from ptnt_mm.workbench.inference.image_loaders import ConfigLoader, LoadedImage, PixelLoader
from ptnt_mm.workbench.inference.tracking import Tracker

Image = str | Path | np.ndarray | LoadedImage
"""A file, an array (H, W, 3) uint8 in BGR, or an image that a predictor has loaded."""


class Predictor(ABC):
    """A model with its weights, for one image at a time. Each host has a subclass.

    Args:
        model: A model with weights, on its device; a ``Deployed`` for an exported file.
        dataset_meta: The names and colours of its classes, see ``find_classes``.
        score_thr: The lowest score of a prediction; None for the host's default.
        loader: Loads its images; None for uint8 pixels.

    Attributes:
        classes: Their names, or None.
        dataset_meta: The same names, and their colours.
        score_thr: The value in use; None for tasks without scores.
        highest_below: The highest score so far that was too low for a prediction; None without any.
        finds_objects: Whether its predictions are boxes, with or without masks.
        notation: What keys of its JSON mean, where names are not enough.
        tracker: The ``Tracker`` of a detector that follows objects, see :meth:`track`; or None.
        tiling: The ``Tiling`` of a detector that cuts large images, see :meth:`tile`; or None.
    """

    finds_objects = False
    notation: Mapping[str, str] = {}

    def __init__(
        self,
        model: Any,
        dataset_meta: dict,
        score_thr: float | None,
        loader: PixelLoader | ConfigLoader | None = None,
    ):
        self.classes = dataset_meta['classes']
        self.dataset_meta = dataset_meta
        self.score_thr = score_thr
        self.highest_below: float | None = None
        self.tracker: Tracker | None = None
        self.tiling: Tiling | None = None
        self.model = model
        self._loader = loader or PixelLoader()

    @property
    def value_range(self) -> Range | None:
        """The range of values that it loads files of more than 8 bits in; None for the hosts'."""
        return self._loader.value_range

    @property
    def limit(self) -> str:
        """The setting, with its value, below which scores are too low."""
        return f'`score_thr={self.score_thr}`'

    def track(self, frame_rate: float) -> None:
        """Treat the images from now on as the frames of a video, and follow its objects.

        Args:
            frame_rate: Frames per second.

        Raises:
            UserError: if the model predicts no objects.
        """
        raise UserError('`track=True` is for detectors: this model finds no objects to follow')

    def tile(self, tiling: Tiling | None) -> None:
        """Detect in tiles of images that are larger than a tile; None for whole images.

        Raises:
            UserError: if the model predicts no objects.
        """
        side = 0 if tiling is None else tiling.tile
        raise UserError(
            f'`tile={side}` is for detectors. A segmenter of mmseg has its own tiles: '
            "test_cfg=dict(mode='slide', crop_size=..., stride=...)"
        )

    def leave_out(self, scores: torch.Tensor) -> None:
        """Remember the highest of scores (n,) that are too low."""
        if len(scores):
            self.highest_below = max(float(scores.max()), self.highest_below or 0.0)

    def name(self, label: int) -> str:
        """The name of a class, or its number without one."""
        return class_name(self.classes, label)

    def load(self, image: Image) -> LoadedImage:
        """Load an image as the test pipeline does; a loaded one is returned unchanged.

        Args:
            image: A file, or an array (H, W, 3) uint8, BGR.

        Raises:
            UserError: if a file cannot be read, or an array has another type or shape.
        """
        if isinstance(image, LoadedImage):
            return image
        is_file = isinstance(image, (str, Path))
        return self._loader.file(Path(image)) if is_file else self._loader.array(image)

    def prepare(self, image: Image) -> dict:
        """The network's input for an image, see :meth:`load`.

        Returns:
            ``inputs`` (1, C, h, w) on the model's device, and a list with one of ``data_samples``.
        """
        with torch.no_grad():
            return self.model.data_preprocessor(self._batch(image))

    def run(self, image: Image) -> Any:
        """The model's sample for an image, see :meth:`load`, on the CPU."""
        with torch.no_grad():
            (sample,) = self.model.test_step(self._batch(image))
        return sample.cpu()

    def result(self, image: Image, draws: bool) -> tuple[dict, np.ndarray | None]:
        """Predict for an image, see :meth:`load`.

        Returns:
            Values for JSON; and a picture, (H, W, 3) uint8, BGR, or None without ``draws``.

        Raises:
            UserError: as :meth:`load`.
        """
        loaded = self.load(image)
        sample = self.predict(loaded)
        height, width = loaded.size
        entry = dict(width=width, height=height, **self.describe(sample))
        return entry, self.draw(loaded.picture(), sample) if draws else None

    def _batch(self, image: Image) -> dict:
        return pseudo_collate([self._loader.rest(dict(self.load(image).entries))])

    @abstractmethod
    def predict(self, image: Image) -> Any:
        """Predict for an image, see :meth:`load`; return the host's sample, on the CPU."""

    @abstractmethod
    def describe(self, sample: Any) -> dict:
        """Convert a sample to values for JSON."""

    @abstractmethod
    def draw(self, image: np.ndarray, sample: Any) -> np.ndarray:
        """Draw a sample on its image; both (H, W, 3) uint8, BGR."""


def fill_sample(sample: Any, found: Detections | np.ndarray) -> Any:
    """Put the output of an exported file into a sample of its host; return the sample."""
    if isinstance(found, Detections):
        boxes, scores, labels, masks = found
        fields = dict(bboxes=boxes, scores=scores, labels=labels, masks=masks)
        known = {name: torch.from_numpy(x) for name, x in fields.items() if x is not None}
        sample.pred_instances = InstanceData(**known)
    elif found.ndim == 1:
        sample.set_pred_score(torch.from_numpy(found)).set_pred_label(int(found.argmax()))
    else:
        sample.pred_sem_seg = PixelData(data=torch.from_numpy(found.astype(np.int64))[None])
    return sample
