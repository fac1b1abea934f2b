"""From the values of a mask to labels, as mmseg's loading turns them."""

from collections.abc import Mapping

import numpy as np

from ptnt_mm.data.index_masks import IGNORED

VALUES = 256
"""mmseg reads masks as 8-bit numbers."""


def label_of_each_value(reduce_zero_label: bool, label_map: Mapping[int, int] | None) -> np.ndarray:
    """The labels of the values 0 to 255, (256,).

    Args:
        reduce_zero_label: Whether 0 is ignored, and the classes begin at 1.
        label_map: From a class's place among all of the data set to that among those asked for.
    """
    labels = np.arange(VALUES)
    if reduce_zero_label:
        labels -= 1
        # mmseg's label for the value 0, and for classes left out.
        labels[[0, IGNORED]] = IGNORED
    if label_map:
        labels = np.array([label_map.get(label, label) for label in labels.tolist()])
    return labels
