"""Detectors of mmdet."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from mmdet.structures import DetDataSample
from mmdet.structures.mask import mask2bbox
from mmengine.structures import InstanceData

from ptnt_mm.workbench.data.masks import encode_mask
from ptnt_mm.workbench.data.tiles import Tiling
from ptnt_mm.workbench.drawing.object_drawings import draw_objects
from ptnt_mm.workbench.engine.tiles import detect_in_tiles, part_of
from ptnt_mm.workbench.inference.image_loaders import LoadedImage
from ptnt_mm.workbench.inference.predictor import Image, Predictor, fill_sample
from ptnt_mm.workbench.inference.tracking import Tracker, by_track

_SCORE_THR = 0.3  # the default score threshold


class _Detector(Predictor):
    """Conversion and drawing of predicted boxes and masks."""

    finds_objects = True

    def __init__(self, model: Any, dataset_meta: dict, score_thr: float | None, loader: Any = None):
        score_thr = _SCORE_THR if score_thr is None else score_thr
        super().__init__(model, dataset_meta, score_thr, loader)

    def tile(self, tiling: Tiling | None) -> None:
        """Detect in tiles of large images from now on; None for whole images."""
        self.tiling = tiling

    def predict(self, image: Image) -> DetDataSample:
        """Detect objects, the best first; boxes and masks refer to the original image."""
        loaded = self.load(image)
        if self.tiling is None or max(loaded.size) <= self.tiling.tile:
            sample = self.detect(loaded)
        else:
            sample = DetDataSample(pred_instances=self._in_tiles(loaded))
        found = self._confident(sample.pred_instances)
        found = found[found.scores.argsort(descending=True, stable=True)]
        if self.tracker is not None:
            found.track_ids = self.tracker.update(self.boxes(found), found.scores)
        sample.pred_instances = found
        return sample

    @abstractmethod
    def detect(self, image: LoadedImage) -> DetDataSample:
        """Detect objects in an image with the network once, whatever their scores."""

    def _in_tiles(self, image: LoadedImage) -> InstanceData:
        def detect(pixels: np.ndarray) -> InstanceData:
            part = replace(image, entries=part_of(image.entries, pixels))
            return self._confident(self.detect(part).pred_instances)

        return detect_in_tiles(detect, image.pixels, self.tiling)

    def track(self, frame_rate: float) -> None:
        """Treat the images from now on as the frames of a video, and follow objects."""
        self.tracker = Tracker(frame_rate)

    def _confident(self, found: InstanceData) -> InstanceData:
        self.leave_out(found.scores[found.scores < self.score_thr])
        return found[found.scores >= self.score_thr]

    def boxes(self, found: InstanceData) -> torch.Tensor:
        """Boxes (n, 4) in pixels: left, top, right, bottom."""
        boxes, masks = found.get('bboxes'), found.get('masks')
        # SOLO predicts masks, with boxes of zeros.
        if isinstance(masks, torch.Tensor) and (boxes is None or not boxes.any()):
            return mask2bbox(masks)
        return boxes

    def describe(self, sample: DetDataSample) -> dict:
        """List the detections; boxes are [x1, y1, x2, y2] in pixels, masks COCO's run lengths."""
        found = sample.pred_instances
        values = found.labels.tolist(), found.scores.tolist(), self.boxes(found).tolist()
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
            # Those of tiles are run lengths already.
            masks = found.masks
            masks = masks if isinstance(masks, list) else map(encode_mask, masks.numpy())
            for detection, mask in zip(detections, masks, strict=True):
                detection['mask'] = mask
        return dict(detections=detections)

    def draw(self, image: np.ndarray, sample: DetDataSample) -> np.ndarray:
        """Draw boxes, masks, names and scores, the best on top; tracks have a colour each."""
        found, meta = sample.pred_instances, self.dataset_meta
        if 'track_ids' in found:
            found, meta = by_track(found, [*map(self.name, found.labels.tolist())])
        return draw_objects(image, found, meta)


class Detector(_Detector):
    """A detector, with or without masks."""

    def detect(self, image: LoadedImage) -> DetDataSample:
        """Detect objects; boxes and masks refer to the image."""
        return self.run(image)


class ExportedDetector(_Detector):
    """An exported detector; its model is a ``Deployed``."""

    def detect(self, image: LoadedImage) -> DetDataSample:
        """Detect objects; boxes and masks refer to the image."""
        return fill_sample(DetDataSample(), self.model(image.pixels[..., ::-1]))
