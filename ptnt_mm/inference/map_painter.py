"""Draw class maps in the colours and with the class names of a data set."""

from functools import partial

import numpy as np

from ptnt_mm.inference.classes import class_name, colours
from ptnt_mm.visualization.overlay import draw_names, tint


class MapPainter:
    """Draws class maps over their images.

    Args:
        dataset_meta: The names and colours of the classes, see ``find_classes``.
        number: Number of classes. Classes without a colour get a generated one.
    """

    def __init__(self, dataset_meta: dict, number: int):
        classes = dataset_meta['classes']
        # A segmenter with one output channel separates two classes.
        number = max(number, 2)
        own = [] if classes is None else dataset_meta['palette']
        self._name = partial(class_name, classes)
        self._colours = np.array([*own, *colours(number)[len(own) :]], dtype=np.uint8)

    def paint(self, image: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Tint every pixel in its class's colour, and write class names where there is room.

        Args:
            image: (H, W, 3) uint8, BGR.
            labels: (H, W), the class of each pixel. Pixels with another value, such as 255 for
                ignored pixels, are not tinted.

        Returns:
            (H, W, 3) uint8, BGR.
        """
        known = np.clip(labels, 0, len(self._colours) - 1)
        layer = self._colours[known][..., ::-1]
        others = known != labels
        layer[others] = image[others]
        return draw_names(tint(image, layer), labels, self._name, self._colours)
