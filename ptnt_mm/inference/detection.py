"""Detectors of mmdet."""

from typing import Any

import numpy as np
import torch
from mmdet.structures import DetDataSample
from mmdet.structures.mask import mask2bbox
from mmengine.config import Config
from mmengine.structures import InstanceData
from torch import nn

from ptnt_mm.drawing.object_drawings import draw_objects
from ptnt_mm.inference.loading import ConfigLoader
from ptnt_mm.inference.predictor import Image, Predictor, fill_sample
from ptnt_mm.inference.tracking import Tracker, by_track
from ptnt_mm.labels.masks import encode_mask

_SCORE_THR = 0.3
"""The default score threshold."""


class _Detector(Predictor):
    """Conversion and drawing of predicted boxes and masks."""

    finds_objects = True

    def __init__(self, model: Any, dataset_meta: dict, score_thr: float | None, loader: Any = None):
        score_thr = _SCORE_THR if score_thr is None else score_thr
        super().__init__(model, dataset_meta, score_thr, loader)

    def track(self, frame_rate: float) -> None:
        """Treat the images from now on as the frames of a video, and follow objects."""
        self.tracker = Tracker(frame_rate)

    def _best(self, found: InstanceData) -> InstanceData:
        self.leave_out(found.scores[found.scores < self.score_thr])
        found = found[found.scores >= self.score_thr]
        found = found[found.scores.argsort(descending=True, stable=True)]
        if self.tracker is not None:
            found.track_ids = self.tracker.update(_boxes(found), found.scores)
        return found

    def describe(self, sample: DetDataSample) -> dict:
        """List the detections; boxes are [x1, y1, x2, y2] in pixels, masks COCO's run lengths."""
        found = sample.pred_instances
        values = found.labels.tolist(), found.scores.tolist(), _boxes(found).tolist()
        detections = [
            dict(
                label=self.name(label),
                score=round(score, 4),
                box=[round(side, 2) for side in box],
            )
            for label, score, box in zip(*values, strict=True)
        ]
        if 'track_ids' in found:
            for detection, track_id in zip(detections, found.track_ids.tolist(), strict=True):
                detection['track_id'] = track_id or None
        if 'masks' in found:
            for detection, mask in zip(detections, found.masks.numpy(), strict=True):
                detection['mask'] = encode_mask(mask)
        return dict(detections=detections)

    def draw(self, image: np.ndarray, sample: DetDataSample) -> np.ndarray:
        """Draw boxes, masks, names and scores, the best on top; tracks have a colour each."""
        found = sample.pred_instances
        if 'track_ids' not in found:
            return draw_objects(image, found, self.dataset_meta)
        return draw_objects(image, *by_track(found, [*map(self.name, found.labels.tolist())]))


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


def _boxes(found: InstanceData) -> torch.Tensor:
    """Boxes (n, 4) in pixels: left, top, right, bottom."""
    boxes = found.get('bboxes')
    # SOLO predicts masks, with boxes of zeros.
    if 'masks' in found and (boxes is None or not boxes.any()):
        return mask2bbox(found.masks)
    return boxes
