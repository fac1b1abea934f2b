"""Find the names of a model's classes, and the colours that they are drawn in."""

from typing import Any

from mmengine.config import Config
from torch import nn

from ptnt_mm.engine.data_files import class_of, data_sets
from ptnt_mm.engine.hosts import scope_of
from ptnt_mm.utils.colours import class_colours
from ptnt_mm.utils.text import printable


def find_classes(meta: dict, config: Config, model: nn.Module) -> dict[str, Any]:
    """Find the names of a model's classes: in its checkpoint, otherwise in its config.

    If their number differs from the model's, they belong to a different data set and are not used.

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
                # None, or those of a different data set, inherited with its class.
                palette = class_colours(len(names))
            classes = tuple(printable(str(name)) for name in names)
            return dict(classes=classes, palette=[tuple(colour) for colour in palette])
    return dict(classes=None, palette='random')


def count_classes(model: nn.Module) -> int | None:
    """Number of classes of a model; None if no module has ``num_classes``."""
    # A region proposal head has one class; the head after it has all of them.
    counts = [getattr(module, 'num_classes', None) for module in model.modules()]
    return max((count for count in counts if isinstance(count, int)), default=None)


def _of_config(config: Config) -> dict:
    """The metainfo in the settings of the test data set, otherwise of its class."""
    data_set = next(data_sets(config, 'test'))
    cls = class_of(data_set.settings, scope_of(config))
    known = {**getattr(cls, 'METAINFO', {}), **(data_set.settings.get('metainfo') or {})}
    stated = data_set.stated_classes
    return known if stated is None else known | dict(classes=stated)
