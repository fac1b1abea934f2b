"""Classifiers of mmpretrain."""

import numpy as np
import torch
from mmcv.transforms import Compose
from mmengine.config import Config
from mmengine.dataset import default_collate
from mmpretrain.structures import DataSample
from torch import nn

from ptnt_mm.engine.data_files import data_sets
from ptnt_mm.engine.settings import kind_of
from ptnt_mm.inference.predictor import Predictor
from ptnt_mm.visualization.class_drawings import best_classes, write_labels


class Classifier(Predictor):
    """A classifier: the best five classes of an image, each with its probability."""

    def __init__(
        self, model: nn.Module, config: Config, dataset_meta: dict, score_thr: float | None
    ):
        super().__init__(model, dataset_meta, score_thr or 0.0)
        pipeline = next(data_sets(config, 'test')).pipeline
        steps = [step for step in pipeline if kind_of(step) != 'LoadImageFromFile']
        # Data sets without image files, such as CIFAR, have RGB.
        self._takes_rgb = len(steps) == len(pipeline) and not model.data_preprocessor.to_rgb
        self.pipeline = Compose(steps)

    def predict(self, image: np.ndarray) -> DataSample:
        """Classify the image: ``pred_score``, (classes,)."""
        size = image.shape[:2]
        if self._takes_rgb:
            image = image[..., ::-1].copy()
        data = self.pipeline(dict(img=image, img_shape=size, ori_shape=size))
        with torch.no_grad():
            (sample,) = self.model.test_step(default_collate([data]))
        return sample.cpu()

    def describe(self, sample: DataSample) -> dict:
        """List the best classes, the best first, with their indices."""
        best = best_classes(sample.pred_score, self.score_thr)
        return dict(classes=[dict(label=self.name(i), index=i, score=round(s, 4)) for i, s in best])

    def draw(self, image: np.ndarray, sample: DataSample) -> np.ndarray:
        """Write the best classes with their probabilities in per cent; small images grow."""
        return write_labels(image, sample, self.classes, self.score_thr)
