"""Identities of objects in a video, for ``ptnt infer --track``. Needs the package `trackers`."""

from typing import Any

import numpy as np
import torch

from ptnt_mm.utils.colours import class_colours
from ptnt_mm.utils.imports import require_packages

_UNTRACKED = (128, 128, 128)

_COLOURS = [*class_colours(63), _UNTRACKED]
"""Colours of tracks, which are repeated after 63 of them; the last is for objects without one."""


class Tracker:
    """Numbers the objects of one video with OC-SORT, which compares boxes and not pixels.

    An object has a number from the third successive frame in which it is detected, in the first
    frames of a video from the second. If it is lost, its number waits for a second. Classes are not
    compared: an object keeps its number when the detector confuses its class. Source:
    `OC-SORT <https://arxiv.org/abs/2203.14360>`_.

    Args:
        frame_rate: Frames per second.

    Attributes:
        count: The number of tracks so far, which is also the number of the last one.

    Raises:
        UserError: if the package `trackers` is not installed.
    """

    def __init__(self, frame_rate: float):
        require_packages('`track=True`', 'trackers')
        # An optional package, and slow to import.
        from trackers import OCSORTTracker

        self.count = 0
        # A detector has its own threshold of scores.
        self._oc_sort = OCSORTTracker(frame_rate=frame_rate, high_conf_det_threshold=0.0)

    def update(self, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Advance to the next frame.

        Args:
            boxes: (n, 4), x1, y1, x2, y2 in pixels.
            scores: (n,).

        Returns:
            (n,) int64, the numbers of their tracks, from 1; 0 for detections without one.
        """
        from supervision import Detections

        found = Detections(boxes.double().numpy(), confidence=scores.double().numpy())
        # The tracker changes the order.
        found.data['row'] = np.arange(len(boxes))
        tracked = self._oc_sort.update(found)
        ids = torch.zeros(len(boxes), dtype=torch.int64)
        if len(tracked) > 0:
            ids[torch.from_numpy(tracked.data['row'])] = torch.from_numpy(tracked.tracker_id + 1)
            self.count = max(self.count, int(ids.max()))
        return ids


def by_track(objects: Any, names: list[str]) -> tuple[Any, dict[str, Any]]:
    """Objects and colours for ``draw_objects``: a colour and a number for each track.

    Args:
        objects: An ``InstanceData`` with ``track_ids``.
        names: The names of their classes.

    Returns:
        The objects with other labels and names, and the ``dataset_meta`` with the colours.
    """
    ids = objects.track_ids
    shown = objects[:]
    shown.labels = torch.where(ids > 0, (ids - 1) % (len(_COLOURS) - 1), len(_COLOURS) - 1)
    shown.label_names = [
        f'#{track_id} {name}' if track_id else name
        for track_id, name in zip(ids.tolist(), names, strict=True)
    ]
    return shown, dict(classes=None, palette=_COLOURS)
