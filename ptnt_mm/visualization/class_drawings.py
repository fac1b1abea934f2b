"""Draw predicted classes: names with their scores, and maps in the colours of the classes."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from ptnt_mm.utils.colours import class_colours
from ptnt_mm.visualization.overlay import draw_names, write_lines

_BEST = 5  # classes listed for a classifier, as for the top-5 accuracy of papers


def class_name(classes: Sequence[str] | None, label: int) -> str:
    """The name of a class, or its number without one."""
    return classes[label] if label < len(classes or ()) else f'class {label}'


def best_classes(scores: Tensor, score_thr: float = 0.0) -> list[tuple[int, float]]:
    """The five best of scores (classes,) that are high enough: indices and scores, best first."""
    best = scores.cpu().sort(descending=True, stable=True)
    found = zip(best.indices[:_BEST].tolist(), best.values[:_BEST].tolist(), strict=True)
    return [(index, score) for index, score in found if score >= score_thr]


def write_labels(
    image: np.ndarray, sample: Any, names: Sequence[str] | None, score_thr: float = 0.0
) -> np.ndarray:
    """Write a classified image's true classes on it, then the best five with their probabilities.

    Args:
        image: (h, w, 3) uint8, BGR.
        sample: A sample of mmpretrain with ``pred_score``, (classes,), and optionally ``gt_label``.
        names: Names of the classes.
        score_thr: The lowest score that is drawn.

    Returns:
        (H, W, 3) uint8, BGR; small images grow.
    """
    true = sample.get('gt_label', torch.tensor([])).tolist()
    lines = [f'truth: {class_name(names, label)}' for label in true]
    best = best_classes(sample.pred_score, score_thr)
    lines += [f'{class_name(names, index)} {100 * score:.1f} %' for index, score in best]
    return write_lines(image, lines)


def paint_map(image: np.ndarray, labels: np.ndarray, dataset_meta: dict, number: int) -> np.ndarray:
    """Tint every pixel in the colour of its class, and write class names where there is room.

    Args:
        image: (H, W, 3) uint8, BGR.
        labels: (H, W), the class of each pixel. Pixels with another value, such as 255 for
            ignored pixels, are not tinted.
        dataset_meta: The names and colours of the classes, as ``find_classes`` returns them.
        number: Number of classes. Classes without a colour get a generated one.

    Returns:
        (H, W, 3) uint8, BGR.
    """
    names = dataset_meta['classes']
    own = [] if names is None else dataset_meta['palette']
    # A segmenter with one output channel separates two classes.
    colours = np.array([*own, *class_colours(max(number, 2))[len(own) :]], dtype=np.uint8)
    known = np.clip(labels, 0, len(colours) - 1)
    layer = np.ascontiguousarray(colours[known][..., ::-1])
    others = known != labels
    layer[others] = image[others]
    tinted = cv2.addWeighted(image, 0.5, layer, 0.5, 0)
    return draw_names(tinted, labels, partial(class_name, names), colours)
