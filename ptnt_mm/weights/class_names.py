"""Names of a model's classes: their number, and their order in a checkpoint and in data."""

from collections.abc import Mapping

from torch import nn

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, first_few, folded

_LISTED = 20  # names of an order that an error shows


def compare_class_names(meta: dict, data: object, model: nn.Module, source: str) -> str | None:
    """Compare the class names in a checkpoint with those of data: labels are their indices.

    Names that differ only in case, or in spaces, hyphens or underscores between words, are equal.
    They are only compared if the checkpoint, the data and a part of the model have the same number
    of classes.

    Args:
        meta: Metadata of the checkpoint.
        data: The metainfo of the data set; anything but a dict with ``classes`` is not compared.
        model: The model that loads the checkpoint.
        source: The checkpoint's file or address, for messages.

    Returns:
        A warning that lists the differences of as many names; None if there is nothing to report.

    Raises:
        UserError: if the data has the same names in another order.
    """
    stored = stored_metainfo(meta).get('classes')
    named = data.get('classes') if isinstance(data, Mapping) else None
    # A language model reads the names: their order does not matter.
    if not are_names(stored) or not are_names(named) or hasattr(model, 'language_model'):
        return None
    if len(stored) != len(named) or len(stored) not in (_counts(model) or {len(stored)}):
        return None
    stored, named = [*map(str, stored)], [*map(str, named)]
    if sorted(stored) != sorted(named):
        stored_keys, keys = [*map(folded, stored)], [*map(folded, named)]
    else:
        stored_keys, keys = stored, named
    unlike = [i for i, pair in enumerate(zip(stored_keys, keys, strict=True)) if len({*pair}) > 1]
    if not unlike:
        return None
    if sorted(stored_keys) == sorted(keys):
        start = 0 if len(named) <= _LISTED else unlike[0]
        since = f' from label {start} on' if start else ''
        raise UserError(
            f'{source} has the same classes as the data in another order. Checkpoint{since}: '
            f'{first_few(stored[start:], _LISTED)}; data{since}: '
            f'{first_few(named[start:], _LISTED)}. Labels are indices, so scores and names would '
            "be wrong: use the checkpoint's order in metainfo.classes and in the labels "
            '(the categories of an annotation file, the values of masks)'
        )
    pairs = first_few(f'{i}: {stored[i]!r}, now {named[i]!r}' for i in unlike)
    return (
        f'{source} has other class names than the data, {counted(len(unlike), "label")} of '
        f'{len(named)}: {pairs}. Unless they are renamed or learned anew, labels mean other things'
    )


def count_classes(model: nn.Module) -> int | None:
    """Number of classes of a model; None if no module has ``num_classes``."""
    # A region proposal head has one class; the head after it has all of them.
    return max(_counts(model), default=None)


def _counts(model: nn.Module) -> set[int]:
    counts = (getattr(module, 'num_classes', None) for module in model.modules())
    return {count for count in counts if isinstance(count, int)}


def stored_metainfo(meta: dict) -> dict:
    """The metainfo of the data set that a checkpoint was trained on, as far as it is known."""
    # mmdet 2 and mmseg 0 wrote it in capitals, on the top level.
    found = meta.get('dataset_meta')
    found = found if isinstance(found, dict) else meta
    return {str(key).lower(): value for key, value in found.items()}


def are_names(names: object) -> bool:
    """Whether this is a list of names, and not a text or the path of a file."""
    return isinstance(names, (list, tuple))
