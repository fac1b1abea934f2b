"""Image files: there, readable, loaded in the size that was annotated, and listed once."""

import hashlib
import io
import os
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmengine.registry import TRANSFORMS, DefaultScope
from PIL import Image

from ptnt_mm.check.many_files import Folders, on_threads, reason
from ptnt_mm.engine.config import kind_of
from ptnt_mm.utils.findings import Finding, error, note, sound, warning
from ptnt_mm.utils.text import some

_ORIENTATION = 0x0112
"""EXIF's tag."""
_ON_THEIR_SIDE = (5, 6, 7, 8)
"""Its values for images that lie on their side; 2, 3 and 4 mirror an image or turn it by 180."""


@dataclass(frozen=True)
class ImageFile:
    """An image as its data set lists it.

    Attributes:
        split: Which split or splits it is for.
        path: The file; None if it is remote.
        size: (width, height) in pixels as annotated; None if nothing says it.
        source: The annotation file, list or folder that names it.
        loader: The host's transform that loads it; None if that is not known.
    """

    split: str
    path: Path | None
    size: tuple[int, int] | None = None
    source: str = ''
    loader: object = None


@dataclass(frozen=True)
class Listing:
    """Where a host has the names of images from, for advice.

    Attributes:
        makes_paths: The settings that have to make one path.
        remove: How to take an image out of the data set.
    """

    makes_paths: str
    remove: str


@dataclass(frozen=True)
class Opened:
    """An image that is there, and what opening it has shown.

    Attributes:
        image: The image.
        digest: Of the bytes of the file.
        fault: Why it cannot be loaded; empty if it can.
        stored: (width, height) in pixels as stored; None if Pillow cannot tell.
        size: (width, height) in pixels as the host loads it.
        turned: Whether loading turns or mirrors it, as its EXIF data says.
    """

    image: ImageFile
    digest: bytes = b''
    fault: str = ''
    stored: tuple[int, int] | None = None
    size: tuple[int, int] | None = None
    turned: bool = False

    @property
    def is_of_other_size(self) -> bool:
        """Whether it is loaded in another size than was annotated."""
        return not self.fault and self.image.size not in (None, self.size)


def loader_of(pipeline: Sequence[Mapping], scope: str) -> object:
    """Build the step of a pipeline that loads images; None if there is none that is known."""
    step = next((step for step in pipeline if kind_of(step) == 'LoadImageFromFile'), None)
    if step is None or step.get('backend_args'):
        return None
    try:
        with DefaultScope.overwrite_default_scope(scope):
            return TRANSFORMS.build(dict(step))
    except Exception:  # of settings that it refuses, another check tells
        return None


def check_images_are_there(images: list[ImageFile], listing: Listing) -> Iterator[Finding]:
    """Look for every image by listing the folders, and open none."""
    folders = Folders()
    for split, of_split in _by_split(images).items():
        local = [image.path for image in of_split if image.path is not None]
        missing = folders.missing(local)
        if missing:
            named = some(map(folders.described, missing))
            there = folders.instead_of(missing[0])
            advice = f'there is {there} instead of the first; ' if there else ''
            if len(missing) == len(local) and not there:
                advice = f'{listing.makes_paths} must make one path'
            else:
                advice += f'copy them there, or {listing.remove}'
            what = f'{len(missing)} of {len(local)} images not there: {named}'
            yield error(split, what, advice)
        elif local:
            yield sound(split, f'{len(local)} images are there')
        if len(local) < len(of_split):
            yield note(split, f'{len(of_split) - len(local)} images are remote: not looked at')


def check_splits_are_apart(images: list[ImageFile]) -> Iterator[Finding]:
    """Look for files that are listed twice, or both trained on and evaluated with.

    However they are spelt, and whatever links lead to them.
    """
    folders = Folders()
    local = [image for image in images if image.path is not None]
    yield from _listed_twice(local, [folders.real(image.path) for image in local])


def check_images_open(images: list[ImageFile], listing: Listing) -> Iterator[Finding]:
    """Load every image that is there as the host does, and compare its size and its bytes."""
    distinct: dict[str, Opened] = {}
    for split, of_split in _by_split(images).items():
        there = [image for image in of_split if image.path is not None and image.path.is_file()]
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', Image.DecompressionBombWarning)
            opened = list(on_threads(_open, there, f'Opening {split} images'))
        found = list(_faults(split, opened, listing))
        yield from found
        if there and not found:
            annotated = all(image.size is not None for image in there)
            yield sound(
                split, f'{len(there)} images open' + ', all of the size annotated' * annotated
            )
        for one in opened:
            # Of one file under several names it was said when the names were compared.
            distinct.setdefault(os.path.realpath(one.image.path), one)
    readable = [one for one in distinct.values() if not one.fault]
    yield from _listed_twice([one.image for one in readable], [one.digest for one in readable])


def size_as_read(image: Image.Image) -> tuple[int, int]:
    """(width, height) of an image in pixels as the hosts read it: turned as its EXIF data says."""
    return image.size[::-1] if _orientation(image) in _ON_THEIR_SIDE else image.size


def size_text(size: tuple[int, int]) -> str:
    """A size for a sentence: 640x480."""
    return 'x'.join(map(str, size))


def _by_split(images: Iterable[ImageFile]) -> dict[str, list[ImageFile]]:
    groups: dict[str, list[ImageFile]] = {}
    for image in images:
        groups.setdefault(image.split, []).append(image)
    return groups


def _listed_twice(images: list[ImageFile], files: list[Hashable]) -> Iterator[Finding]:
    """Look for one file behind several images.

    Args:
        images: The images.
        files: What is the same for the same file, for each.
    """
    lists: dict[tuple[str, str], dict[Hashable, list[ImageFile]]] = {}
    for image, file in zip(images, files, strict=True):
        lists.setdefault((image.split, image.source), {}).setdefault(file, []).append(image)
    trained = {file for (split, _), listed in lists.items() if split == 'train' for file in listed}
    for (split, _), listed in lists.items():
        several = [group for group in listed.values() if len(group) > 1]
        if several:
            named = some(' and '.join(str(image.path) for image in group) for group in several)
            what = f'{len(several)} of {len(listed)} images listed more than once: {named}'
            yield warning(split, what, 'put what is annotated in an image under one name')
        shared = [str(group[0].path) for file, group in listed.items() if file in trained]
        if split != 'train' and shared:
            what = f'{len(shared)} of {len(listed)} images also trained on: {some(shared)}'
            yield warning(split, what, 'figures will be better than on images never seen')


def _open(image: ImageFile) -> Opened:
    """Load an image: with Pillow, which notices what is cut off, and as the host does."""
    fault, loads_anyway, stored, orientation = '', False, None, 1
    try:
        content = image.path.read_bytes()
        digest = hashlib.blake2b(content, digest_size=16).digest()
    except OSError as err:
        return Opened(image, fault=reason(err))
    try:
        with Image.open(io.BytesIO(content)) as opened:
            stored, orientation = opened.size, _orientation(opened)
            # Of a JPEG, an eighth is enough to see that it is whole.
            opened.draft(None, (1, 1))
            opened.load()
    except Exception as err:  # decoders complain in every way there is
        fault, loads_anyway = reason(err), stored is None
    size = stored[::-1] if stored and orientation in _ON_THEIR_SIDE else stored
    turned = orientation != 1
    if image.loader is not None and (not fault or loads_anyway):
        try:
            pixels = image.loader.transform(dict(img_path=str(image.path)))['img']
        except Exception as err:  # decoders complain in every way there is
            fault = fault or f'{type(image.loader).__name__} fails: {reason(err)}'
        else:
            fault, size = '', pixels.shape[1::-1]
            turned &= getattr(image.loader, 'color_type', 'color') in ('color', 'grayscale')
    return Opened(image, digest, fault, stored, size, turned)


def _faults(split: str, opened: list[Opened], listing: Listing) -> Iterator[Finding]:
    """What is wrong with the images of a split, each by itself."""
    broken = [f'{one.image.path} ({one.fault})' for one in opened if one.fault]
    if broken:
        what = f'{len(broken)} of {len(opened)} images not readable: {some(broken)}'
        yield error(split, what, f'copy them again, or {listing.remove}')
    other = [one for one in opened if one.is_of_other_size]
    if other:
        what = f'{len(other)} of {len(opened)} images not of the size annotated'
        advice = 'boxes would lie in wrong places: annotate the images as they are'
        yield error(split, f'{what}: {some(map(_compared, other))}', advice)
    # Sides that change places show in the size, where that is known.
    hidden = [
        str(one.image.path)
        for one in opened
        if one.turned and not one.fault and one.size == one.stored and not one.is_of_other_size
    ]
    if hidden:
        what = f'{len(hidden)} of {len(opened)} images turned or mirrored as their EXIF data says'
        advice = (
            'their size does not show whether they were annotated so: look at some, or save them '
            'as they are to be seen, without EXIF data'
        )
        yield warning(split, f'{what}: {some(hidden)}', advice)


def _compared(one: Opened) -> str:
    how = ', turned as its EXIF data says' if one.turned and one.size != one.stored else ''
    size, annotated = size_text(one.size), size_text(one.image.size)
    return f'{one.image.path} is {size}{how}, annotated {annotated}'


def _orientation(image: Image.Image) -> int:
    return image.getexif().get(_ORIENTATION, 1)
