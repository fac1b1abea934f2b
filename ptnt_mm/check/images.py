"""Image files: there, readable, and of the size that the annotations were made for."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from ptnt_mm.check.many_files import Folders, on_threads, reason
from ptnt_mm.finding import Finding, error, note, sound, warning
from ptnt_mm.wording import some

_ORIENTATION = 0x0112
"""EXIF's tag, and its values for images that lie on their side."""
_ON_THEIR_SIDE = (5, 6, 7, 8)


@dataclass(frozen=True)
class ImageFile:
    """An image as its data set lists it.

    Attributes:
        split: Which split or splits it is for.
        path: The file; None if it is remote.
        size: (width, height) in pixels as annotated; None if nothing says it.
    """

    split: str
    path: Path | None
    size: tuple[int, int] | None = None


@dataclass(frozen=True)
class Listing:
    """Where a host has the names of images from, for advice.

    Attributes:
        makes_paths: The settings that have to make one path.
        remove: How to take an image out of the data set.
    """

    makes_paths: str
    remove: str


def check_images_are_there(images: list[ImageFile], listing: Listing) -> Iterator[Finding]:
    """Look for every image by listing the folders, and open none."""
    folders = Folders()
    for split, of_split in _by_split(images).items():
        local = [image.path for image in of_split if image.path is not None]
        missing = folders.missing(local)
        if missing:
            what = f'{len(missing)} of {len(local)} images not there: {some(map(str, missing))}'
            if len(missing) == len(local):
                advice = f'{listing.makes_paths} must make one path'
            else:
                there = folders.instead_of(missing[0])
                instead = f'there is {there} instead of the first; ' if there else ''
                advice = f'{instead}copy them there, or {listing.remove}'
            yield error(split, what, advice)
        elif local:
            yield sound(split, f'{len(local)} images are there')
        if len(local) < len(of_split):
            yield note(split, f'{len(of_split) - len(local)} images are remote: not looked at')


def check_images_open(images: list[ImageFile], listing: Listing) -> Iterator[Finding]:
    """Decode every image that is there, and compare its size."""
    for split, of_split in _by_split(images).items():
        there = [image for image in of_split if image.path is not None and image.path.is_file()]
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', Image.DecompressionBombWarning)
            found = on_threads(_problem, there, f'Opening {split} images')
            problems = [problem for problem in found if problem]
        broken = [text for size_is_wrong, text in problems if not size_is_wrong]
        other_size = [text for size_is_wrong, text in problems if size_is_wrong]
        if broken:
            what = f'{len(broken)} of {len(there)} images not readable: {some(broken)}'
            yield error(split, what, f'copy them again, or {listing.remove}')
        if other_size:
            what = f'{len(other_size)} of {len(there)} images not of the size annotated'
            advice = 'boxes would lie in wrong places: annotate the images as they are'
            yield error(split, f'{what}: {some(other_size)}', advice)
        if there and not problems:
            annotated = all(image.size is not None for image in there)
            yield sound(
                split, f'{len(there)} images open' + ', all of the size annotated' * annotated
            )


def check_splits_are_apart(images: list[ImageFile]) -> Iterator[Finding]:
    """Look for images that a model is trained on and evaluated with."""
    by_split = _by_split(images)
    trained = {image.path for image in by_split.get('train', []) if image.path is not None}
    for split, of_split in by_split.items():
        shared = [str(image.path) for image in of_split if image.path in trained]
        if split != 'train' and shared:
            what = f'{len(shared)} of {len(of_split)} images also trained on: {some(shared)}'
            yield warning(split, what, 'figures will be better than on images never seen')


def size_as_read(image: Image.Image) -> tuple[int, int]:
    """(width, height) of an image in pixels as the hosts read it: turned as its EXIF data says."""
    return image.size[::-1] if _is_turned(image) else image.size


def size_text(size: tuple[int, int]) -> str:
    """A size for a sentence: 640x480."""
    return 'x'.join(map(str, size))


def _by_split(images: Iterable[ImageFile]) -> dict[str, list[ImageFile]]:
    groups: dict[str, list[ImageFile]] = {}
    for image in images:
        groups.setdefault(image.split, []).append(image)
    return groups


def _problem(image: ImageFile) -> tuple[bool, str] | None:
    """Whether the size is what is wrong with an image, and what is; None if nothing is."""
    try:
        with Image.open(image.path) as opened:
            opened.load()
            size, turned = size_as_read(opened), _is_turned(opened)
    except Exception as err:  # decoders complain in every way there is
        return False, f'{image.path} ({reason(err)})'
    if image.size is None or size == image.size:
        return None
    how = ', turned as its EXIF data says' if turned else ''
    return True, f'{image.path} is {size_text(size)}{how}, annotated {size_text(image.size)}'


def _is_turned(image: Image.Image) -> bool:
    return image.getexif().get(_ORIENTATION) in _ON_THEIR_SIDE
