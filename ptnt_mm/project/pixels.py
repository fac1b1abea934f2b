"""Examine the pixels of images before training: what loading would lose, and the range to load."""

from pathlib import Path

from ptnt_mm.data.pixel_values import PixelValues, choose_range, measure_values, oddity
from ptnt_mm.labels.formats.format import DAMAGED
from ptnt_mm.labels.model import Labels
from ptnt_mm.utils.decoding import Range, why_unreadable
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.many_files import on_threads
from ptnt_mm.utils.text import first_few


def examine_pixels(labels: Labels) -> Range | None:
    """Report what loading would lose, and skip images that no loader of a project can read.

    Returns:
        The range of values to load images of more than 8 bits in; None if the hosts' loading
        leaves enough grey levels.

    Raises:
        UserError: if no image can be read.
    """
    paths = [image.path for image in labels.images]
    found = dict(zip(paths, on_threads(_examine, paths, 'Examining pixels'), strict=True))
    deep = []
    for path, (values, problem) in found.items():
        if problem is not None:
            labels.report(path, *problem)
        if values is not None:
            deep.append(values)
    unreadable = {path for path, (_, problem) in found.items() if problem and problem[0] == DAMAGED}
    labels.images = [image for image in labels.images if image.path not in unreadable]
    if unreadable and not labels.images:
        path = min(unreadable)
        raise UserError(f'no image can be read: {path}: {found[path][1][1]}')
    value_range = choose_range(deep) if deep else None
    if value_range is not None:
        labels.notes.append(_note(deep, len(paths), value_range))
    return value_range


def _examine(path: Path) -> tuple[PixelValues | None, tuple[str, str] | None]:
    """The values of an image of more than 8 bits; and a problem, its kind and detail."""
    try:
        content = path.read_bytes()
        found = oddity(content)
        return measure_values(content), found and (f'images with {found[0]}', found[1])
    except Exception as error:  # decoders may raise anything
        return None, (DAMAGED, why_unreadable(error))


def _note(deep: list[PixelValues], total: int, value_range: Range) -> str:
    kept = [values.levels_of_hosts for values in deep]
    if all(kept):
        lost = f'mmcv leaves at most {max(kept)} of 256 grey levels'
    elif any(values.type == 'int16' for values in deep):
        lost = 'mmcv garbles negative values'
    else:
        lost = 'mmcv cannot load them'
    lowest, highest = min(v.lowest for v in deep), max(v.highest for v in deep)
    low, high = value_range
    return (
        f'{len(deep):,} of {total:,} images have {first_few(sorted({v.depth for v in deep}))} '
        f'pixels with values from {lowest:g} to {highest:g}: {lost}. The config loads '
        f'{low:g} to {high:g} as 256 grey levels; change value_range there for other images'
    )
