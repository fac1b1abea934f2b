"""Image files: existing, readable, loaded in the annotated size, and listed once."""

import hashlib
import io
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ptnt_mm.deploy.decoding import alone_if_large, large_images_expected, why_unreadable
from ptnt_mm.utils.findings import (
    Finding,
    FindingKind,
    Severity,
    note,
    ok,
    report_kinds,
    report_wrong,
)
from ptnt_mm.utils.numbers import is_pair
from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.check.data_sets import ImageFile, LoadedDataset
from ptnt_mm.workbench.config.settings import type_name
from ptnt_mm.workbench.data.image_files import ON_THEIR_SIDE, decoded
from ptnt_mm.workbench.data.many_files import Folders, on_threads
from ptnt_mm.workbench.data.pixel_values import COMMON, few_levels, measure_values, oddity

_BROKEN = FindingKind('images not readable', Severity.ERROR, 'copy them again, or {remove}')
_OF_OTHER_SIZE = FindingKind(
    'images not of the annotated size',
    Severity.ERROR,
    'boxes would be in wrong places: annotate the images as they are',
)
_TURNED = FindingKind(
    'images rotated or mirrored by their EXIF data',
    Severity.WARNING,
    'their size does not show whether they were annotated like this: check a few, or save them '
    'upright and without EXIF data',
)
_OF_FEW_LEVELS = FindingKind(
    'images that lose most of their grey levels when loaded',
    Severity.WARNING,
    "load them with dict(type='LoadImageInRange', value_range=(low, high)) in all pipelines; "
    'ptnt new chooses such a range',
)
_OUT_OF_RANGE = FindingKind(
    'images with values outside the range that they are loaded in',
    Severity.WARNING,
    'change value_range of LoadImageInRange in all pipelines',
)
_DROPPED = FindingKind(
    'images that are not loaded completely',
    Severity.WARNING,
    'save what the model needs as 8-bit images of three channels',
)
_TOO_NARROW = FindingKind(
    'images too narrow to be resized',
    Severity.ERROR,
    'resizing would leave no pixel of their shorter side: cut them, or {remove}',
)
_IF_COMMON = (_OF_FEW_LEVELS, _OUT_OF_RANGE)

_LISTED_TWICE = FindingKind(
    'images listed more than once',
    Severity.WARNING,
    'merge the annotations of an image under one name',
)
_TRAINED_ON = FindingKind(
    'images also trained on',
    Severity.WARNING,
    'metrics will be better than on unseen images',
)

_OF_HOSTS = {
    'mmdet': (
        'data_prefix.img and the file_name of the annotation file',
        'take them out of the annotation file',
    ),
    'mmseg': (
        'data_prefix.img_path, the names in ann_file, which have no ending, and img_suffix',
        'take them out, and their masks',
    ),
    'mmpretrain': ('data_prefix and the names in ann_file', 'take them out'),
    'mmrotate': (
        'data_prefix.img_path, the names of the files in ann_file, and img_suffix',
        'take them out, and their labels',
    ),
}
"""For advice: the settings that together make an image's path, and how to take an image out."""


def _advice(data: LoadedDataset) -> tuple[str, str]:
    # Other libraries have data sets like mmdet's.
    return _OF_HOSTS.get(data.scope, _OF_HOSTS['mmdet'])


def check_images_are_there(data: Sequence[LoadedDataset]) -> Iterator[Finding]:
    """Check that every image exists and is listed once, without opening any."""
    folders = Folders()
    names = []
    for dataset in data:
        local = [image.path for image in dataset.images if image.path is not None]
        missing = folders.missing(local)
        if missing:
            makes_paths, remove = _advice(dataset)
            advice = folders.advice(missing, remove)
            if len(missing) == len(local) and not folders.instead_of(missing[0]):
                advice = f'{makes_paths} must together make a path'
            named = map(folders.described, missing)
            yield from report_wrong(
                Severity.ERROR, dataset.name, named, len(local), 'images not found', advice
            )
        elif local:
            yield ok(dataset.name, f'{counted(len(local), "image")} found')
        if len(local) < len(dataset.images):
            remote = len(dataset.images) - len(local)
            yield note(dataset.name, f'{counted(remote, "remote image")} not checked')
        # One file may have several spellings and links.
        names.append([(path, folders.real(path)) for path in local])
    yield from _listed_twice(data, names)


def check_images_open(data: Sequence[LoadedDataset]) -> Iterator[Finding]:
    """Load every existing image as the host does, and compare its size and its bytes."""
    seen, digests = set(), []
    for dataset in data:
        there = [
            image for image in dataset.images if image.path is not None and image.path.is_file()
        ]
        steps = dataset.data_set.pipeline
        load = partial(open_image, loader=dataset.image_loader, pipeline=steps)
        with large_images_expected():
            opened = list(on_threads(load, there, f'Opening {dataset.name} images'))
        for kind in (_BROKEN, _TOO_NARROW, _OF_OTHER_SIZE, _TURNED, _DROPPED, *_IF_COMMON):
            wrong = [evidence for _, found, evidence in opened if found is kind]
            if kind in _IF_COMMON and len(wrong) < COMMON * len(there):
                continue
            advice = kind.advice.format(remove=_advice(dataset)[1])
            yield from report_wrong(
                kind.severity, dataset.name, wrong, len(there), kind.what, advice
            )
        if there and not any(kind for _, kind, _ in opened):
            annotated = all(image.size is not None for image in there)
            size = ', all of the annotated size' if annotated else ''
            yield ok(dataset.name, f'{counted(len(there), "image")} read{size}')
        digests.append([])
        for image, (digest, kind, _) in zip(there, opened, strict=True):
            # Several names of one file were reported with the names.
            name = os.path.realpath(image.path)
            if name not in seen and kind is not _BROKEN:
                digests[-1].append((image.path, digest))
            seen.add(name)
    yield from _listed_twice(data, digests)


def size_text(size: tuple[int, int]) -> str:
    """Format a size, such as 640x480."""
    return 'x'.join(map(str, size))


def _listed_twice(
    data: Sequence[LoadedDataset], lists: list[list[tuple[Path, Hashable]]]
) -> Iterator[Finding]:
    """Report images that are the same file; each path comes with a key of the file."""
    pairs = list(zip(data, lists, strict=True))
    trained = {file for dataset, images in pairs if dataset.trains for _, file in images}
    for dataset, images in pairs:
        names: dict[Hashable, list[str]] = {}
        for path, file in images:
            names.setdefault(file, []).append(str(path))
        several = [' and '.join(group) for group in names.values() if len(group) > 1]
        trained_on = [group[0] for file, group in names.items() if file in trained]
        wrong = {_LISTED_TWICE: several, _TRAINED_ON: [] if dataset.trains else trained_on}
        yield from report_kinds(dataset.name, wrong, len(names))


def open_image(
    image: ImageFile, loader: object, pipeline: Sequence[Mapping] = ()
) -> tuple[bytes, FindingKind | None, str]:
    """Load an image with the host's ``LoadImageFromFile``; with Pillow alone without one.

    Args:
        image: The image.
        loader: The host's transform, or None.
        pipeline: The settings of the pipeline, whose sizes it has to fit.

    Returns:
        The digest of its bytes; the finding about it, if any; and the evidence.
    """
    path = image.path
    try:
        content = path.read_bytes()
    except OSError as err:
        return b'', _BROKEN, f'{path} ({why_unreadable(err)})'
    digest = hashlib.blake2b(content, digest_size=16).digest()
    why, stored, orientation = decoded(io.BytesIO(content))
    size = stored[::-1] if stored and orientation in ON_THEIR_SIDE else stored
    turned = orientation != 1
    # The host may read formats that Pillow does not.
    if loader is not None and (not why or stored is None):
        try:
            with alone_if_large(stored):
                pixels = loader.transform(dict(img_path=str(path)))['img']
        except Exception as err:  # decoders may raise anything
            why = why or f'{type(loader).__name__} fails: {why_unreadable(err)}'
        else:
            why, size = '', pixels.shape[1::-1]
            turned &= getattr(loader, 'color_type', 'color') in ('color', 'grayscale')
    if why:
        return digest, _BROKEN, f'{path} ({why})'
    if any(_leaves_nothing(step, size) for step in pipeline):
        return digest, _TOO_NARROW, f'{path} ({size_text(size)})'
    sides_are_swapped = turned and size != stored
    if image.size not in (None, size):
        how = ', rotated by its EXIF data' if sides_are_swapped else ''
        evidence = f'{path} is {size_text(size)}{how}, annotated {size_text(image.size)}'
        return digest, _OF_OTHER_SIZE, evidence
    # With swapped sides, a known size would have shown it.
    if turned and not sides_are_swapped:
        return digest, _TURNED, str(path)
    if loader is not None:
        kind, evidence = _pixel_finding(content, loader, pixels)
        return digest, kind, f'{path} ({evidence})'
    return digest, None, ''


def _leaves_nothing(step: Mapping, size: tuple[int, int]) -> bool:
    """Whether a step resizes an image, (width, height), to less than a pixel, as mmcv rounds."""
    scale = step.get('scale')
    if not step.get('keep_ratio') or 'Resize' not in type_name(step):
        return False
    # RandomResize chooses between two pairs.
    pairs = filter(is_pair, (scale, *scale) if isinstance(scale, (tuple, list)) else ())
    factors = (min(max(pair) / max(size), min(pair) / min(size)) for pair in pairs)
    least = min(step.get('ratio_range') or (1,))
    return any(min(size) * factor * least < 0.5 for factor in factors)


def _pixel_finding(
    content: bytes, loader: object, loaded: np.ndarray
) -> tuple[FindingKind | None, str]:
    """Describe what a loader loses of an image file, with the evidence.

    Args:
        content: The file.
        loader: The host's transform.
        loaded: Its pixels, (H, W, C) or (H, W).
    """
    if getattr(loader, 'color_type', 'color') != 'color':
        return None, ''
    try:
        values, dropped = measure_values(content), oddity(content)
    except Exception:  # of a format that only the host reads
        return None, ''
    if values is not None:
        stated = getattr(loader, 'value_range', None)
        low, high = stated or (values.low, values.high)
        margin = (high - low) / 10
        if values.low < low - margin or values.high > high + margin:
            return _OUT_OF_RANGE, f'{values}, loaded from {low:g} to {high:g}'
        if few := few_levels(content, values, loaded, stated):
            return _OF_FEW_LEVELS, few
    return (None, '') if dropped is None else (_DROPPED, ': '.join(dropped))
