"""Image files: there, readable, loaded in the size that was annotated, and listed once."""

import os
import warnings
from collections.abc import Hashable, Iterator, Sequence

from PIL import Image

from ptnt_mm.check.data_sets import Data, ImageFile
from ptnt_mm.data.image_files import OpenedImage, open_image
from ptnt_mm.utils.findings import Finding, error, note, report_wrong, sound, warning
from ptnt_mm.utils.many_files import Folders, on_threads


def check_images_are_there(data: Sequence[Data]) -> Iterator[Finding]:
    """Look for every image, and for any that is listed twice, by listing folders: open none."""
    folders = Folders()
    for split, images in _by_split(data).items():
        local = [image.path for image in images if image.path is not None]
        missing = folders.missing(local)
        there = folders.instead_of(missing[0]) if missing else ''
        if len(missing) == len(local) and not there:
            advice = f'{data[0].MAKES_PATHS} must make one path'
        else:
            advice = f'there is {there} instead of the first; ' if there else ''
            advice += f'copy them there, or {data[0].REMOVE}'
        named = map(folders.described, missing)
        yield from report_wrong(error, split, named, len(local), 'images not there', advice)
        if local and not missing:
            yield sound(split, f'{len(local)} images are there')
        if len(local) < len(images):
            yield note(split, f'{len(images) - len(local)} images are remote: not looked at')
    # One file may have several spellings and links.
    local = [image for one in data for image in one.images if image.path is not None]
    yield from _listed_twice([(image, folders.real(image.path)) for image in local])


def check_images_open(data: Sequence[Data]) -> Iterator[Finding]:
    """Load every image that is there as the host does, and compare its size and its bytes."""
    distinct: dict[str, tuple[ImageFile, OpenedImage]] = {}
    for split, images in _by_split(data).items():
        there = [image for image in images if image.path is not None and image.path.is_file()]
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', Image.DecompressionBombWarning)
            title = f'Opening {split} images'
            opened = on_threads(lambda image: open_image(image.path, image.loader), there, title)
            pairs = list(zip(there, opened, strict=True))
        found = list(_faults(split, pairs, data[0].REMOVE))
        yield from found
        if there and not found:
            annotated = all(image.size is not None for image in there)
            size = ', all of the size annotated' if annotated else ''
            yield sound(split, f'{len(there)} images open{size}')
        for image, one in pairs:
            # Several names of one file were reported with the names.
            distinct.setdefault(os.path.realpath(one.path), (image, one))
    readable = [(image, one.digest) for image, one in distinct.values() if not one.fault]
    yield from _listed_twice(readable)


def size_text(size: tuple[int, int]) -> str:
    """A size for a sentence: 640x480."""
    return 'x'.join(map(str, size))


def _by_split(data: Sequence[Data]) -> dict[str, list[ImageFile]]:
    groups: dict[str, list[ImageFile]] = {}
    for one in data:
        if one.images:
            groups.setdefault(one.name, []).extend(one.images)
    return groups


def _listed_twice(images: list[tuple[ImageFile, Hashable]]) -> Iterator[Finding]:
    """Look for one file behind several images; beside each is what the same files share."""
    lists: dict[tuple[str, str], dict[Hashable, list[ImageFile]]] = {}
    for image, file in images:
        lists.setdefault((image.split, image.source), {}).setdefault(file, []).append(image)
    trained = {file for (split, _), listed in lists.items() if split == 'train' for file in listed}
    for (split, _), listed in lists.items():
        several = [group for group in listed.values() if len(group) > 1]
        named = (' and '.join(str(image.path) for image in group) for group in several)
        advice = 'put what is annotated in an image under one name'
        what = 'images listed more than once'
        yield from report_wrong(warning, split, named, len(listed), what, advice)
        if split != 'train':
            shared = [str(group[0].path) for file, group in listed.items() if file in trained]
            advice = 'figures will be better than on images never seen'
            what = 'images also trained on'
            yield from report_wrong(warning, split, shared, len(listed), what, advice)


def _faults(
    split: str, opened: list[tuple[ImageFile, OpenedImage]], remove: str
) -> Iterator[Finding]:
    """What is wrong with the images of a split, each by itself."""
    broken, other, hidden = [], [], []
    for image, one in opened:
        is_turned_over = one.turned and one.size != one.stored
        if one.fault:
            broken.append(f'{one.path} ({one.fault})')
        elif image.size not in (None, one.size):
            how = ', turned as its EXIF data says' if is_turned_over else ''
            sizes = size_text(one.size), size_text(image.size)
            other.append(f'{one.path} is {sizes[0]}{how}, annotated {sizes[1]}')
        elif one.turned and not is_turned_over:
            # If its sides changed places, a known size would show it.
            hidden.append(str(one.path))
    advice = f'copy them again, or {remove}'
    yield from report_wrong(error, split, broken, len(opened), 'images not readable', advice)
    what = 'images not of the size annotated'
    advice = 'boxes would lie in wrong places: annotate the images as they are'
    yield from report_wrong(error, split, other, len(opened), what, advice)
    what = 'images turned or mirrored as their EXIF data says'
    advice = (
        'their size does not show whether they were annotated so: look at some, or save them '
        'as they are to be seen, without EXIF data'
    )
    yield from report_wrong(warning, split, hidden, len(opened), what, advice)
