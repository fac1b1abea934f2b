"""Classifiers of mmpretrain."""

import numpy as np
import torch
from mmpretrain.structures import DataSample
from torch import nn

from ptnt_mm.workbench.drawing.class_drawings import predicts_several, shown_classes, write_labels
from ptnt_mm.workbench.inference.image_loaders import ConfigLoader
from ptnt_mm.workbench.inference.predictor import Image, Predictor, fill_sample


class Classifier(Predictor):
    """A classifier: the best five classes of an image, each with its probability.

    With a multi-label head, all the classes that the head predicts.
    """

    def __init__(
        self,
        model: nn.Module,
        dataset_meta: dict,
        score_thr: float | None,
        loader: ConfigLoader | None = None,
    ):
        super().__init__(model, dataset_meta, score_thr or 0.0, loader)
        self._several = predicts_several(model)

    @property
    def limit(self) -> str:
        """The setting, with its value, below which scores are too low."""
        thr = getattr(self.model.head, 'thr', None) if self._several else None
        return super().limit if thr is None or self.score_thr > thr else f'model.head.thr={thr}'

    def prepare(self, image: Image) -> dict:
        """The network's input for the whole image: the test pipeline would crop it."""
        pixels = torch.from_numpy(np.atleast_3d(self.load(image).pixels)).permute(2, 0, 1)
        with torch.no_grad():
            return self.model.data_preprocessor(dict(inputs=[pixels], data_samples=[DataSample()]))

    def predict(self, image: Image) -> DataSample:
        """Classify an image: ``pred_score``, (classes,)."""
        return self.run(image)

    def describe(self, sample: DataSample) -> dict:
        """List the predicted classes, the best first, with their indices."""
        shown = shown_classes(sample, self.score_thr, self._several)
        if not shown:
            self.leave_out(sample.pred_score)
        return dict(
            classes=[dict(label=self.name(i), index=i, score=round(s, 4)) for i, s in shown]
        )

    def draw(self, image: np.ndarray, sample: DataSample) -> np.ndarray:
        """Write the predicted classes with probabilities; small images grow."""
        return write_labels(image, sample, self.classes, self.score_thr, self._several)


class ExportedClassifier(Classifier):
    """An exported classifier; its model is a ``Deployed``."""

    def predict(self, image: Image) -> DataSample:
        """Classify an image: ``pred_score``, (classes,)."""
        return fill_sample(DataSample(), self.model(self.load(image).pixels[..., ::-1]))
