"""Detectors of mmdet."""

from typing import Any

import numpy as np
from mmdet.structures import DetDataSample
from mmdet.structures.mask import mask2bbox
from mmengine.config import Config
from mmengine.structures import InstanceData
from torch import nn

from ptnt_mm.drawing.object_drawings import draw_objects
from ptnt_mm.inference.loading import ConfigLoader
from ptnt_mm.inference.predictor import Image, Predictor, fill_sample
from ptnt_mm.labels.masks import encode_mask

_SCORE_THR = 0.3
"""The default score threshold."""


class _Detector(Predictor):
    """Conversion and drawing of predicted boxes and masks."""

    finds_objects = True

    def __init__(self, model: Any, dataset_meta: dict, score_thr: float | None, loader: Any = None):
        score_thr = _SCORE_THR if score_thr is None else score_thr
        super().__init__(model, dataset_meta, score_thr, loader)

    def _best(self, found: InstanceData) -> InstanceData:
        self.leave_out(found.scores[found.scores < self.score_thr])
        found = found[found.scores >= self.score_thr]
        return found[found.scores.argsort(descending=True, stable=True)]

    def describe(self, sample: DetDataSample) -> dict:
        """List the detections; boxes are [x1, y1, x2, y2] in pixels, masks COCO's run lengths."""
        found = sample.pred_instances
        boxes = found.get('bboxes')
        if 'masks' in found and (boxes is None or not boxes.any()):
            # SOLO predicts masks without boxes.
            boxes = mask2bbox(found.masks)
        values = found.labels.tolist(), found.scores.tolist(), boxes.tolist()
        detections = [
            dict(
                label=self.name(label),
                score=round(score, 4),
                box=[round(side, 2) for side in box],
            )
            for label, score, box in zip(*values, strict=True)
        ]
        if 'masks' in found:
            for detection, mask in zip(detections, found.masks.numpy(), strict=True):
                detection['mask'] = encode_mask(mask)
        return dict(detections=detections)

    def draw(self, image: np.ndarray, sample: DetDataSample) -> np.ndarray:
        """Draw boxes, masks, names and scores, the best on top."""
        return draw_objects(image, sample.pred_instances, self.dataset_meta)


class Detector(_Detector):
    """A detector, with or without masks."""

    def __init__(
        self, model: nn.Module, config: Config, dataset_meta: dict, score_thr: float | None
    ):
        super().__init__(model, dataset_meta, score_thr, ConfigLoader(config))

    def predict(self, image: Image) -> DetDataSample:
        """Detect objects, the best first; boxes and masks refer to the original image."""
        sample = self.run(image)
        sample.pred_instances = self._best(sample.pred_instances)
        return sample


class ExportedDetector(_Detector):
    """An exported detector; its model is a ``Deployed``."""

    def predict(self, image: Image) -> DetDataSample:
        """Detect objects, the best first; boxes and masks refer to the original image."""
        sample = fill_sample(DetDataSample(), self.model(self.load(image).pixels[..., ::-1]))
        sample.pred_instances = self._best(sample.pred_instances)
        return sample
