"""Image files: existing, readable, loaded in the annotated size, and listed once."""

import os
import warnings
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from pathlib import Path

from PIL import Image

from ptnt_mm.check.data_sets import Data, ImageFile
from ptnt_mm.data.image_files import OpenedImage, open_image
from ptnt_mm.utils.findings import Finding, error, note, ok, report_wrong, warning
from ptnt_mm.utils.many_files import Folders, on_threads


def check_images_are_there(data: Sequence[Data]) -> Iterator[Finding]:
    """Check that every image exists and is listed once, without opening any."""
    folders = Folders()
    names = []
    for dataset in data:
        local = [image.path for image in dataset.images if image.path is not None]
        missing = folders.missing(local)
        if missing:
            advice = folders.advice(missing, dataset.REMOVE)
            if len(missing) == len(local) and not folders.instead_of(missing[0]):
                advice = f'{dataset.MAKES_PATHS} must make one path'
            named = map(folders.described, missing)
            yield from report_wrong(
                error, dataset.name, named, len(local), 'images not there', advice
            )
        elif local:
            yield ok(dataset.name, f'{len(local)} images are there')
        if len(local) < len(dataset.images):
            remote = len(dataset.images) - len(local)
            yield note(dataset.name, f'{remote} images are remote: not looked at')
        # One file may have several spellings and links.
        names.append([(path, folders.real(path)) for path in local])
    yield from _listed_twice(data, names)


def check_images_open(data: Sequence[Data]) -> Iterator[Finding]:
    """Load every existing image as the host does, and compare its size and its bytes."""
    seen, digests = set(), []
    for dataset in data:
        there = [
            image for image in dataset.images if image.path is not None and image.path.is_file()
        ]
        paths, load = (
            [image.path for image in there],
            partial(open_image, loader=dataset.image_loader),
        )
        with warnings.catch_warnings(action='ignore', category=Image.DecompressionBombWarning):
            opened = list(on_threads(load, paths, f'Opening {dataset.name} images'))
        found = list(_faults(dataset, there, opened))
        yield from found
        if there and not found:
            annotated = all(image.size is not None for image in there)
            size = ', all of the size annotated' if annotated else ''
            yield ok(dataset.name, f'{len(there)} images open{size}')
        digests.append([])
        for image in opened:
            # Several names of one file were reported with the names.
            name = os.path.realpath(image.path)
            if name not in seen and not image.fault:
                digests[-1].append((image.path, image.digest))
            seen.add(name)
    yield from _listed_twice(data, digests)


def size_text(size: tuple[int, int]) -> str:
    """Format a size, such as 640x480."""
    return 'x'.join(map(str, size))


def _listed_twice(
    data: Sequence[Data], lists: list[list[tuple[Path, Hashable]]]
) -> Iterator[Finding]:
    """Report images that are the same file; each path comes with a key of the file."""
    pairs = list(zip(data, lists, strict=True))
    trained = {file for dataset, images in pairs if dataset.trains for _, file in images}
    for dataset, images in pairs:
        names: dict[Hashable, list[str]] = {}
        for path, file in images:
            names.setdefault(file, []).append(str(path))
        several = [' and '.join(group) for group in names.values() if len(group) > 1]
        what, advice = (
            'images listed more than once',
            'put what is annotated in an image under one name',
        )
        yield from report_wrong(warning, dataset.name, several, len(names), what, advice)
        if not dataset.trains:
            shared = [group[0] for file, group in names.items() if file in trained]
            what, advice = (
                'images also trained on',
                'figures will be better than on images never seen',
            )
            yield from report_wrong(warning, dataset.name, shared, len(names), what, advice)


def _faults(data: Data, images: list[ImageFile], opened: list[OpenedImage]) -> Iterator[Finding]:
    """Faults of single images of a data set."""
    broken, other, hidden = [], [], []
    for image, opened_image in zip(images, opened, strict=True):
        is_turned_over = opened_image.turned and opened_image.size != opened_image.stored
        if opened_image.fault:
            broken.append(f'{opened_image.path} ({opened_image.fault})')
        elif image.size not in (None, opened_image.size):
            how = ', turned as its EXIF data says' if is_turned_over else ''
            size, annotated = size_text(opened_image.size), size_text(image.size)
            other.append(f'{opened_image.path} is {size}{how}, annotated {annotated}')
        elif opened_image.turned and not is_turned_over:
            # With swapped sides, a known size would have shown it.
            hidden.append(str(opened_image.path))
    what, advice = 'images not readable', f'copy them again, or {data.REMOVE}'
    yield from report_wrong(error, data.name, broken, len(opened), what, advice)
    what = 'images not of the size annotated'
    advice = 'boxes would be in wrong places: annotate the images as they are'
    yield from report_wrong(error, data.name, other, len(opened), what, advice)
    what = 'images turned or mirrored as their EXIF data says'
    advice = (
        'their size does not show whether they were annotated like this: check a few, or save them '
        'upright and without EXIF data'
    )
    yield from report_wrong(warning, data.name, hidden, len(opened), what, advice)
