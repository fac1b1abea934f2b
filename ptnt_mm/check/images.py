"""Image files: there, readable, loaded in the size that was annotated, and listed once."""

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
    """Look for every image, and for any that is listed twice, by listing folders: open none."""
    folders = Folders()
    names = []
    for one in data:
        local = [image.path for image in one.images if image.path is not None]
        missing = folders.missing(local)
        if missing:
            advice = folders.advice(missing, one.REMOVE)
            if len(missing) == len(local) and not folders.instead_of(missing[0]):
                advice = f'{one.MAKES_PATHS} must make one path'
            named = map(folders.described, missing)
            yield from report_wrong(error, one.name, named, len(local), 'images not there', advice)
        elif local:
            yield ok(one.name, f'{len(local)} images are there')
        if len(local) < len(one.images):
            remote = len(one.images) - len(local)
            yield note(one.name, f'{remote} images are remote: not looked at')
        # One file may have several spellings and links.
        names.append([(path, folders.real(path)) for path in local])
    yield from _listed_twice(data, names)


def check_images_open(data: Sequence[Data]) -> Iterator[Finding]:
    """Load every image that is there as the host does, and compare its size and its bytes."""
    seen, digests = set(), []
    for one in data:
        there = [image for image in one.images if image.path is not None and image.path.is_file()]
        paths, load = [image.path for image in there], partial(open_image, loader=one.image_loader)
        with warnings.catch_warnings(action='ignore', category=Image.DecompressionBombWarning):
            opened = list(on_threads(load, paths, f'Opening {one.name} images'))
        found = list(_faults(one, there, opened))
        yield from found
        if there and not found:
            annotated = all(image.size is not None for image in there)
            size = ', all of the size annotated' if annotated else ''
            yield ok(one.name, f'{len(there)} images open{size}')
        digests.append([])
        for image in opened:
            # Several names of one file were reported with the names.
            name = os.path.realpath(image.path)
            if name not in seen and not image.fault:
                digests[-1].append((image.path, image.digest))
            seen.add(name)
    yield from _listed_twice(data, digests)


def size_text(size: tuple[int, int]) -> str:
    """A size for a sentence: 640x480."""
    return 'x'.join(map(str, size))


def _listed_twice(
    data: Sequence[Data], lists: list[list[tuple[Path, Hashable]]]
) -> Iterator[Finding]:
    """Look for one file behind several images; beside each path is what the same files share."""
    pairs = list(zip(data, lists, strict=True))
    trained = {file for one, images in pairs if one.trains for _, file in images}
    for one, images in pairs:
        names: dict[Hashable, list[str]] = {}
        for path, file in images:
            names.setdefault(file, []).append(str(path))
        several = [' and '.join(group) for group in names.values() if len(group) > 1]
        what, advice = (
            'images listed more than once',
            'put what is annotated in an image under one name',
        )
        yield from report_wrong(warning, one.name, several, len(names), what, advice)
        if not one.trains:
            shared = [group[0] for file, group in names.items() if file in trained]
            what, advice = (
                'images also trained on',
                'figures will be better than on images never seen',
            )
            yield from report_wrong(warning, one.name, shared, len(names), what, advice)


def _faults(data: Data, images: list[ImageFile], opened: list[OpenedImage]) -> Iterator[Finding]:
    """What is wrong with the images of a data set, each by itself."""
    broken, other, hidden = [], [], []
    for image, one in zip(images, opened, strict=True):
        is_turned_over = one.turned and one.size != one.stored
        if one.fault:
            broken.append(f'{one.path} ({one.fault})')
        elif image.size not in (None, one.size):
            how = ', turned as its EXIF data says' if is_turned_over else ''
            size, annotated = size_text(one.size), size_text(image.size)
            other.append(f'{one.path} is {size}{how}, annotated {annotated}')
        elif one.turned and not is_turned_over:
            # If its sides changed places, a known size would show it.
            hidden.append(str(one.path))
    what, advice = 'images not readable', f'copy them again, or {data.REMOVE}'
    yield from report_wrong(error, data.name, broken, len(opened), what, advice)
    what = 'images not of the size annotated'
    advice = 'boxes would lie in wrong places: annotate the images as they are'
    yield from report_wrong(error, data.name, other, len(opened), what, advice)
    what = 'images turned or mirrored as their EXIF data says'
    advice = (
        'their size does not show whether they were annotated so: look at some, or save them as '
        'they are to be seen, without EXIF data'
    )
    yield from report_wrong(warning, data.name, hidden, len(opened), what, advice)
