"""Image files: there, readable, loaded in the size that was annotated, and listed once."""

import hashlib
import io
import os
import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from PIL import Image

from ptnt_mm.check.data_sets import Data, ImageFile
from ptnt_mm.check.files_on_disk import Folders, on_threads, reason
from ptnt_mm.utils.findings import Finding, error, note, report_wrong, sound, warning

_ORIENTATION = 0x0112  # EXIF's tag
_ON_THEIR_SIDE = (5, 6, 7, 8)  # its values; 2, 3 and 4 mirror an image or turn it by 180 degrees


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

    def __str__(self) -> str:
        return str(self.image.path)


def check_images_are_there(data: Sequence[Data]) -> Iterator[Finding]:
    """Look for every image by listing the folders, and open none."""
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


def check_splits_are_apart(data: Sequence[Data]) -> Iterator[Finding]:
    """Look for files that are listed twice, or both trained on and evaluated with.

    However they are spelt, and whatever links lead to them.
    """
    folders = Folders()
    local = [image for one in data for image in one.images if image.path is not None]
    yield from _listed_twice(local, [folders.real(image.path) for image in local])


def check_images_open(data: Sequence[Data]) -> Iterator[Finding]:
    """Load every image that is there as the host does, and compare its size and its bytes."""
    distinct: dict[str, Opened] = {}
    for split, images in _by_split(data).items():
        there = [image for image in images if image.path is not None and image.path.is_file()]
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', Image.DecompressionBombWarning)
            opened = list(on_threads(_open, there, f'Opening {split} images'))
        found = list(_faults(split, opened, data[0].REMOVE))
        yield from found
        if there and not found:
            annotated = all(image.size is not None for image in there)
            size = ', all of the size annotated' if annotated else ''
            yield sound(split, f'{len(there)} images open{size}')
        for one in opened:
            # Another check has compared the names of one file.
            distinct.setdefault(os.path.realpath(one.image.path), one)
    readable = [one for one in distinct.values() if not one.fault]
    yield from _listed_twice([one.image for one in readable], [one.digest for one in readable])


def size_as_read(image: Image.Image) -> tuple[int, int]:
    """(width, height) of an image in pixels as the hosts read it: turned as its EXIF data says."""
    return image.size[::-1] if _orientation(image) in _ON_THEIR_SIDE else image.size


def size_text(size: tuple[int, int]) -> str:
    """A size for a sentence: 640x480."""
    return 'x'.join(map(str, size))


def _by_split(data: Sequence[Data]) -> dict[str, list[ImageFile]]:
    groups: dict[str, list[ImageFile]] = {}
    for one in data:
        if one.images:
            groups.setdefault(one.name, []).extend(one.images)
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
        named = (' and '.join(str(image.path) for image in group) for group in several)
        advice = 'put what is annotated in an image under one name'
        what = 'images listed more than once'
        yield from report_wrong(warning, split, named, len(listed), what, advice)
        if split != 'train':
            shared = [str(group[0].path) for file, group in listed.items() if file in trained]
            advice = 'figures will be better than on images never seen'
            what = 'images also trained on'
            yield from report_wrong(warning, split, shared, len(listed), what, advice)


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


def _faults(split: str, opened: list[Opened], remove: str) -> Iterator[Finding]:
    """What is wrong with the images of a split, each by itself."""
    total = len(opened)
    broken = [f'{one} ({one.fault})' for one in opened if one.fault]
    advice = f'copy them again, or {remove}'
    yield from report_wrong(error, split, broken, total, 'images not readable', advice)
    other = [_compared(one) for one in opened if one.is_of_other_size]
    advice = 'boxes would lie in wrong places: annotate the images as they are'
    yield from report_wrong(error, split, other, total, 'images not of the size annotated', advice)
    # Sides that change places show in the size, where that is known.
    hidden = [
        str(one)
        for one in opened
        if one.turned and not one.fault and one.size == one.stored and not one.is_of_other_size
    ]
    what = 'images turned or mirrored as their EXIF data says'
    advice = (
        'their size does not show whether they were annotated so: look at some, or save them '
        'as they are to be seen, without EXIF data'
    )
    yield from report_wrong(warning, split, hidden, total, what, advice)


def _compared(one: Opened) -> str:
    how = ', turned as its EXIF data says' if one.turned and one.size != one.stored else ''
    return f'{one} is {size_text(one.size)}{how}, annotated {size_text(one.image.size)}'


def _orientation(image: Image.Image) -> int:
    return image.getexif().get(_ORIENTATION, 1)
