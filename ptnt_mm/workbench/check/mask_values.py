"""The values of class masks, and how mmseg reads and interprets them."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.deploy.decoding import DECODERS, large_images_expected, why_unreadable
from ptnt_mm.utils.findings import (
    Finding,
    FindingKind,
    Severity,
    error,
    ok,
    report_kinds,
    report_wrong,
    warning,
)
from ptnt_mm.utils.text import first_few
from ptnt_mm.workbench.check.data_sets import ImageFile, LoadedDataset, misread_names
from ptnt_mm.workbench.check.image_lists import loading_of
from ptnt_mm.workbench.check.images import size_text
from ptnt_mm.workbench.check.mask_settings import ignored_label
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.class_masks import (
    COLOURED,
    CUT,
    MASK_FILE_RULES,
    MISREAD,
    NO_CLASS,
    NOT_READABLE,
    OF_OTHER_SIZE,
    VALUES,
    MaskFile,
    label_of_each_value,
)
from ptnt_mm.workbench.data.image_files import size_as_read
from ptnt_mm.workbench.data.many_files import on_threads

_Evidence = list[tuple[FindingKind, str]]
"""Findings about a mask, each with what shows it."""


def open_mask(image: ImageFile, backend: str) -> tuple[np.ndarray | None, _Evidence]:
    """Decode the mask of an image; ``backend`` is mmcv's decoder for masks.

    Returns:
        Pixels of each value that mmseg reads, (256,), or None if they are not the values of the
        file; and the findings about it with evidence.
    """
    # mmseg decodes with mmcv: Pillow reads a palette's indices, OpenCV its colours.
    from mmcv import imfrombytes

    path = image.mask
    try:
        content = path.read_bytes()
        with Image.open(io.BytesIO(content), formats=DECODERS) as opened:
            mode, size, is_jpeg = opened.mode, opened.size, opened.format == 'JPEG'
            # Greys of 2 or 4 bits are stretched to 8. A TIFF's arguments are several.
            how = str(opened.tile[0].args) if opened.tile else ''
        pixels = imfrombytes(content, flag='unchanged', backend=backend)
        if pixels is None:
            raise ValueError('not an image')
    except Exception as err:  # decoders may raise anything
        return None, [(NOT_READABLE, f'{path} ({why_unreadable(err)})')]
    if pixels.shape[2:] == (1,):
        # mmseg drops it, too.
        pixels = pixels[..., 0]
    bits = next((bits for bits in (2, 4) if f'L;{bits}' in how), 8)
    mask = MaskFile(size, size_as_read(image.path), pixels, is_jpeg, bits)
    evidence = {
        COLOURED: lambda: f' ({mode})',
        CUT: lambda: f' ({first_few(map(str, mask.lost_values.tolist()))})',
        OF_OTHER_SIZE: lambda: f' is {size_text(size)}, its image {size_text(mask.image_size)}',
    }
    rules = [rule for rule in MASK_FILE_RULES if rule.applies_to(mask)]
    is_misread = any(rule in MISREAD for rule in rules)
    counts = None if is_misread else np.bincount(mask.loaded.ravel(), minlength=VALUES)
    return counts, [(rule, f'{path}{evidence.get(rule, str)()}') for rule in rules]


_WHITE = VALUES - 1  # the value of the object in a black-and-white drawing

_BACKGROUND = ('background', 'bg', '_background_', '__background__')

_ZERO_ON = 'set reduce_zero_label=True for all data sets, and in LoadAnnotations where it is stated'
_ZERO_OFF = _ZERO_ON.replace('True', 'False')

_Counted = tuple[Path, np.ndarray]
"""A mask, and its pixels of each value, (256,)."""


def check_masks(data: list[LoadedDataset], view: ConfigView) -> Iterator[Finding]:
    """Open every mask; check its format, and find unintended values."""
    for dataset in data:
        opened = _open(dataset)
        kinds = (NOT_READABLE, *MASK_FILE_RULES)
        wrong: dict[FindingKind, list[str]] = {kind: [] for kind in kinds}
        for _, _, found in opened:
            for kind, evidence in found:
                wrong[kind].append(evidence)
        yield from report_kinds(dataset.name, wrong, len(opened))
        masks = [(path, counts) for path, counts, _ in opened if counts is not None]
        if masks and not any(misread_names(dataset)):
            yield from _check_values(dataset, masks, ignored_label(view))


def _open(data: LoadedDataset) -> list[tuple[Path, np.ndarray | None, _Evidence]]:
    there = [image for image in data.images if image.mask is not None and image.mask.is_file()]
    loading = filter(None, map(loading_of, data.pipelines.values()))
    backend = next(loading, {}).get('imdecode_backend', 'pillow')
    with large_images_expected():
        title = f'Opening {data.name} masks'
        return list(
            on_threads(lambda image: (image.mask, *open_mask(image, backend)), there, title)
        )


class _Values:
    """The values of all masks of a data set, which is built.

    Attributes:
        counts: Pixels of each value, (256,).
        counted: Whether each value counts as a class, (256,).
        is_no_class: Whether each value occurs, counts, and has no class, (256,).
        present: The values that occur.
        first: The value of the first class: 0, or 1 if 0 is ignored.
        last: The value of the last class, including classes that are not in use.
    """

    def __init__(self, data: LoadedDataset, masks: list[_Counted], ignored: int):
        label_map = data.built.label_map
        self.data, self.masks = data, masks
        self.first = int(bool(data.built.reduce_zero_label))
        self.last = self.first + len(label_map or data.classes) - 1
        self.labels = label_of_each_value(bool(self.first), label_map)
        self.counts = np.sum([counts for _, counts in masks], axis=0)
        self.counted = self.labels != ignored
        known = self.labels < len(data.classes)
        self.is_no_class = (self.counts > 0) & self.counted & ~known
        self.present = set(np.flatnonzero(self.counts).tolist())


def _check_values(data: LoadedDataset, masks: list[_Counted], ignored: int) -> Iterator[Finding]:
    values = _Values(data, masks, ignored)
    if values.present == {0, _WHITE}:
        advice = f'write 1 in place of {_WHITE}, which marks ignored pixels'
        advice += f', and {_ZERO_OFF}' if values.first else ''
        what = f'all {len(masks)} masks contain only 0 and {_WHITE}, as if black and white'
        yield error(data.name, what, advice)
        return
    meaning = [*_out_of_range(values), *_shifted(values)]
    # If values mean something else, classes are absent for that reason.
    found = [*meaning, *_nothing_counts(values)] + ([] if meaning else [*_absent(values)])
    if found:
        yield from found
        return
    counts = values.counts
    uncounted = counts[~values.counted].sum() / counts.sum()
    share = f', {uncounted:.1%} of the pixels ignored' if uncounted else ''
    counted = np.flatnonzero(counts * values.counted)
    yield ok(data.name, f'{len(masks)} masks open, values {counted[0]} to {counted[-1]}{share}')


def _out_of_range(values: _Values) -> Iterator[Finding]:
    wrong = values.is_no_class
    having = [(path, counts) for path, counts in values.masks if counts[wrong].any()]
    if not having:
        return
    named = first_few(f'{path} ({_values_in(counts * wrong)})' for path, counts in having)
    what = (
        f'{len(having)} of {len(values.masks)} {NO_CLASS}: {named}; '
        f'the classes are {values.first} to {values.last}'
    )
    is_one_more = not values.first and np.flatnonzero(wrong).tolist() == [values.last + 1]
    if is_one_more and 0 not in values.present:
        advice = f'0 never occurs, so the masks begin at 1: {_ZERO_ON}'
    elif is_one_more:
        advice = (
            'with 0, there is one more value than classes: if 0 is background, name it first in '
            f'classes and write num_classes={len(values.data.classes) + 1}; if it does not '
            f'count, {_ZERO_ON}'
        )
    elif not any(0 < value <= values.last for value in values.present):
        advice = (
            f'the values {_values_in(values.counts)} may be grey values for display: write the '
            'index of the class in place of each'
        )
    else:
        advice = (
            'write the index of a class, or add the missing classes to metainfo.classes; '
            f'{_WHITE} marks ignored pixels'
        )
    yield error(values.data.name, what, advice)


def _shifted(values: _Values) -> Iterator[Finding]:
    """Report that 0 is ignored although it is a class, so that every class is one too high."""
    present, names = values.present, values.data.classes
    of_all = values.data.built.label_map is None and not values.is_no_class.any()
    if not (values.first and of_all and 0 in present and values.last not in present):
        return
    share = values.counts[0] / values.counts.sum()
    what = (
        f'reduce_zero_label=True ignores the value 0, {share:.0%} of the pixels, and no mask has '
        f'{values.last}, the value of {names[-1]}'
    )
    if names[0].casefold() in _BACKGROUND:
        yield error(values.data.name, what, f'the masks begin at 0: {_ZERO_OFF}')
    elif set(range(values.last)) <= present and len(names) > 1:
        yield warning(values.data.name, what, f'if the masks begin at 0, {_ZERO_OFF}')


def _nothing_counts(values: _Values) -> Iterator[Finding]:
    """Report masks without a pixel that has a class."""
    empty = [(path, counts) for path, counts in values.masks if not counts[values.counted].any()]
    named = (f'{path} ({_values_in(counts)})' for path, counts in empty)
    severity, advice = Severity.WARNING, 'nothing is learned from them: remove them'
    if len(empty) == len(values.masks):
        severity, advice = Severity.ERROR, 'there is nothing to learn or to measure'
    what = 'masks without a pixel that counts'
    yield from report_wrong(severity, values.data.name, named, len(values.masks), what, advice)


def _absent(values: _Values) -> Iterator[Finding]:
    seen = set(values.labels[list(values.present)].tolist())
    absent = [name for label, name in enumerate(values.data.classes) if label not in seen]
    if not absent or len(absent) == len(values.data.classes):
        return
    lacks = 'they cannot be learned' if values.data.trains else 'their IoU cannot be measured'
    advice = f'{lacks} from these masks'
    if not values.first and absent == [values.data.classes[0]]:
        advice = f'0 never occurs: if the masks begin at 1, {_ZERO_ON}'
    yield warning(values.data.name, f'no pixel of {first_few(absent)}', advice)


def _values_in(counts: np.ndarray) -> str:
    """The first few values that occur, from counts (256,)."""
    return first_few(map(str, np.flatnonzero(counts)))
