"""mmdet's visualizer with our drawings. Needs mmdet."""

from collections.abc import Sequence

import numpy as np
from mmdet.visualization import DetLocalVisualizer
from mmengine.structures import InstanceData

from ptnt_mm.workbench.drawing.object_drawings import draw_objects


class ObjectVisualizer(DetLocalVisualizer):
    """Draws objects in sizes that suit the image, as `ptnt infer` does.

    mmdet's own lines and letters have a fixed size, and cannot be read on a large photograph.
    Configs name this class by its path: importing ptnt_mm alone does not need mmdet.
    """

    def _draw_instances(
        self,
        image: np.ndarray,
        instances: InstanceData,
        classes: Sequence[str] | None,
        palette: Sequence | None,
    ) -> np.ndarray:
        """Draw objects or detections on an image, (H, W, 3) uint8, RGB."""
        meta = dict(classes=classes, palette=palette)
        return draw_objects(image[..., ::-1], instances, meta)[..., ::-1]
