"""Names of a model's classes and their colours, to draw and to list what it finds."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from ptnt_mm.utils.colours import palette_of
from ptnt_mm.utils.text import printable
from ptnt_mm.weights.class_names import are_names, count_classes, stored_metainfo


def find_classes(meta: dict, data: Mapping, model: nn.Module) -> dict[str, Any]:
    """Find the names of a model's classes: in its checkpoint, otherwise in those of its data.

    If their number differs from the model's, they belong to a different data set and are not used.

    Args:
        meta: Metadata of the checkpoint.
        data: The metainfo of its test data.
        model: A model with a module that has ``num_classes``.

    Returns:
        ``classes``, a tuple of names or None, and ``palette``, a list of RGB colours for them or
        'random': the ``dataset_meta`` of a host's visualizer.
    """
    number = count_classes(model)
    for known in (stored_metainfo(meta), data):
        names = known.get('classes')
        if are_names(names) and number in (None, len(names)):
            palette = palette_of(known, len(names))
            classes = tuple(printable(str(name)) for name in names)
            return dict(classes=classes, palette=[tuple(colour) for colour in palette])
    return dict(classes=None, palette='random')
