"""Names of a model's classes, and the colours that they are drawn in."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.config import Config
from mmengine.registry import DATASETS
from torch import Tensor, nn

from ptnt_mm.engine.data_files import data_sets
from ptnt_mm.utils.colours import class_colours
from ptnt_mm.utils.text import printable
from ptnt_mm.visualization.overlay import draw_names, write_lines

_BEST = 5  # classes listed for a classifier, as for the top-5 accuracy of papers


def find_classes(meta: dict, config: Config, model: nn.Module) -> dict[str, Any]:
    """Find the names of a model's classes: in its checkpoint, or else in its config.

    If their number differs from the model's, they belong to another data set and are not used.

    Args:
        meta: Metadata of the checkpoint.
        config: The model's config.
        model: A model with a module that has ``num_classes``.

    Returns:
        ``classes``, a tuple of names or None, and ``palette``, a list of RGB colours for them or
        'random': the ``dataset_meta`` of a host's visualizer.
    """
    number = count_classes(model)
    # mmdet 2 and mmseg 0 wrote it in capitals, on the top level.
    of_checkpoint = meta.get('dataset_meta')
    of_checkpoint = of_checkpoint if isinstance(of_checkpoint, dict) else meta
    of_checkpoint = {str(key).lower(): value for key, value in of_checkpoint.items()}
    for known in (of_checkpoint, _of_config(config)):
        names = known.get('classes')
        if isinstance(names, (list, tuple)) and number in (None, len(names)):
            palette = known.get('palette')
            if not isinstance(palette, (list, tuple)) or len(palette) != len(names):
                # None, or those of another data set, inherited with its class.
                palette = class_colours(len(names))
            classes = tuple(printable(str(name)) for name in names)
            return dict(classes=classes, palette=[tuple(colour) for colour in palette])
    return dict(classes=None, palette='random')


def count_classes(model: nn.Module) -> int | None:
    """Number of classes of a model; None if no module has ``num_classes``."""
    # A region proposal head has one class; the head after it has all of them.
    counts = [getattr(module, 'num_classes', None) for module in model.modules()]
    return max((count for count in counts if isinstance(count, int)), default=None)


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
        dataset_meta: The names and colours of the classes, see ``find_classes``.
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


def _of_config(config: Config) -> dict:
    """The metainfo in the settings of the test data set, or else of its class."""
    dataset = next(data_sets(config, 'test')).settings
    with DATASETS.switch_scope_and_registry(None) as registry:
        kind = registry.get(dataset.type) if isinstance(dataset.type, str) else dataset.type
    return {**getattr(kind, 'METAINFO', {}), **(dataset.get('metainfo') or {})}
