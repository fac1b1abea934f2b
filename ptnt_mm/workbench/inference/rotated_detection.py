"""Detectors of mmrotate, whose boxes have an angle or four corners."""

import numpy as np
import torch
from mmdet.structures import DetDataSample
from mmengine.structures import InstanceData

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.rotated_boxes import around, as_array, corners_of
from ptnt_mm.workbench.data.tiles import Tiling
from ptnt_mm.workbench.inference.detection import Detector

_PARTS = ('x', 'y', 'width', 'height', 'angle')


class RotatedDetector(Detector):
    """A detector of boxes (n, 5) or (n, 8); its tracks are of the upright boxes around them."""

    notation = dict(
        rotated_box='x and y of the centre, width and height in pixels; the angle in radians, '
        'clockwise from the x axis to the width'
    )

    def tile(self, tiling: Tiling | None) -> None:
        """Raise a UserError for tiles, because only upright boxes can be merged."""
        if tiling is not None:
            raise UserError(
                f'`tile={tiling.tile}` merges upright boxes: cut large images with '
                "mmrotate's tools/data/dota/split/img_split.py"
            )
        super().tile(tiling)

    def boxes(self, found: InstanceData) -> torch.Tensor:
        """The upright boxes around the others, (n, 4) in pixels: left, top, right, bottom."""
        boxes = as_array(found.bboxes)
        # A detector of mmdet, which a config of mmrotate may have, finds upright ones.
        return super().boxes(found) if boxes.shape[1] == 4 else _around(boxes)

    def describe(self, sample: DetDataSample) -> dict:
        """List the detections with their corners; those of a rotated box also as five numbers."""
        description = super().describe(sample)
        boxes = as_array(sample.pred_instances.bboxes)
        if boxes.shape[1] == 4:
            return description
        outlines = corners_of(boxes).round(2).tolist()
        for detection, corners, box in zip(
            description['detections'], outlines, boxes.tolist(), strict=True
        ):
            detection['corners'] = corners
            if len(box) == len(_PARTS):
                digits = (2, 2, 2, 2, 4)
                detection['rotated_box'] = dict(zip(_PARTS, map(round, box, digits), strict=True))
        return description


def _around(boxes: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(around(corners_of(boxes)))
