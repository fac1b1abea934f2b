"""Classifiers of mmpretrain."""

import numpy as np
import torch
from mmengine.config import Config
from mmpretrain.structures import DataSample
from torch import nn

from ptnt_mm.drawing.class_drawings import best_classes, write_labels
from ptnt_mm.inference.loading import ConfigLoader
from ptnt_mm.inference.predictor import Image, Predictor


class Classifier(Predictor):
    """A classifier: the best five classes of an image, each with its probability."""

    def __init__(
        self, model: nn.Module, config: Config, dataset_meta: dict, score_thr: float | None
    ):
        super().__init__(model, dataset_meta, score_thr or 0.0, ConfigLoader(config))

    def prepare(self, image: Image) -> dict:
        """The network's input for the whole image: the test pipeline would crop it."""
        pixels = torch.from_numpy(np.atleast_3d(self.load(image).pixels)).permute(2, 0, 1)
        with torch.no_grad():
            return self.model.data_preprocessor(dict(inputs=[pixels], data_samples=[DataSample()]))

    def predict(self, image: Image) -> DataSample:
        """Classify an image: ``pred_score``, (classes,)."""
        return self.run(image)

    def describe(self, sample: DataSample) -> dict:
        """List the best classes, the best first, with their indices."""
        best = best_classes(sample.pred_score, self.score_thr)
        return dict(classes=[dict(label=self.name(i), index=i, score=round(s, 4)) for i, s in best])

    def draw(self, image: np.ndarray, sample: DataSample) -> np.ndarray:
        """Write the best classes with their probabilities in percent; small images grow."""
        return write_labels(image, sample, self.classes, self.score_thr)
