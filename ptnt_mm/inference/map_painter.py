"""Maps of classes as pictures, in the colours and with the names of a data set."""

from functools import partial

import numpy as np

from ptnt_mm.inference.classes import class_name, colours
from ptnt_mm.inference.overlay import draw_names, tint


class MapPainter:
    """Draws maps of classes over their images.

    Args:
        dataset_meta: The names and colours of the classes, see ``find_classes``.
        number: How many classes there are; those without a colour get one of ours.
    """

    def __init__(self, dataset_meta: dict, number: int):
        classes = dataset_meta['classes']
        # A segmenter with a single channel, for the foreground, tells two classes apart.
        number = max(number, 2)
        own = [] if classes is None else dataset_meta['palette']
        self._name = partial(class_name, classes)
        self._colours = np.array([*own, *colours(number)[len(own) :]], dtype=np.uint8)

    def paint(self, image: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Tint every pixel in its class's colour, and write names where there is room.

        Args:
            image: (H, W, 3) uint8, BGR.
            labels: (H, W), the class of each pixel. What is no class, such as the 255 of pixels
                that do not count, stays as it is.

        Returns:
            (H, W, 3) uint8, BGR.
        """
        known = np.clip(labels, 0, len(self._colours) - 1)
        layer = self._colours[known][..., ::-1]
        others = known != labels
        layer[others] = image[others]
        return draw_names(tint(image, layer), labels, self._name, self._colours)
