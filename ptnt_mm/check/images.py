"""Image files: there, readable, and of the size that the annotations were made for."""

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from rich.console import Console
from rich.progress import track

from ptnt_mm.check.finding import Finding, error, note, sound, warning
from ptnt_mm.check.wording import some

_THREADS = 8
"""Decoding lets go of Python's lock, and disks like several readers."""

_ORIENTATION = 0x0112
"""EXIF's tag, and its values for images that lie on their side."""
_ON_THEIR_SIDE = (5, 6, 7, 8)


@dataclass(frozen=True)
class ImageFile:
    """An image as its annotation file lists it.

    Attributes:
        split: Which split or splits it is for.
        path: The file; None if it is remote.
        size: (width, height) in pixels.
    """

    split: str
    path: Path | None
    size: tuple[int, int]


def check_images_are_there(images: list[ImageFile]) -> Iterator[Finding]:
    """Look for every image by listing the folders, and open none."""
    folders: dict[Path, set[str]] = {}
    for split, of_split in _by_split(images).items():
        local = [image.path for image in of_split if image.path is not None]
        missing = [path for path in local if path.name not in _listing(path.parent, folders)]
        if missing:
            advice = _advice(missing[0], len(missing) == len(local), folders)
            what = f'{len(missing)} of {len(local)} images not there: {some(map(str, missing))}'
            yield error(split, what, advice)
        elif local:
            yield sound(split, f'{len(local)} images are there')
        if len(local) < len(of_split):
            yield note(split, f'{len(of_split) - len(local)} images are remote: not looked at')


def check_images_open(images: list[ImageFile]) -> Iterator[Finding]:
    """Decode every image that is there, and compare its size."""
    for split, of_split in _by_split(images).items():
        there = [image for image in of_split if image.path is not None and image.path.is_file()]
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', Image.DecompressionBombWarning)
            problems = [problem for problem in _map(_problem, there, split) if problem]
        broken = [text for size_is_wrong, text in problems if not size_is_wrong]
        other_size = [text for size_is_wrong, text in problems if size_is_wrong]
        if broken:
            what = f'{len(broken)} of {len(there)} images not readable: {some(broken)}'
            yield error(split, what, 'copy them again, or take them out of the annotation file')
        if other_size:
            what = f'{len(other_size)} of {len(there)} images not of the size annotated'
            advice = 'boxes would lie in wrong places: annotate the images as they are'
            yield error(split, f'{what}: {some(other_size)}', advice)
        if there and not problems:
            yield sound(split, f'{len(there)} images open, all of the size annotated')


def check_splits_are_apart(images: list[ImageFile]) -> Iterator[Finding]:
    """Look for images that a model is trained on and evaluated with."""
    by_split = _by_split(images)
    trained = {image.path for image in by_split.get('train', []) if image.path is not None}
    for split, of_split in by_split.items():
        shared = [str(image.path) for image in of_split if image.path in trained]
        if split != 'train' and shared:
            what = f'{len(shared)} of {len(of_split)} images also trained on: {some(shared)}'
            yield warning(split, what, 'figures will be better than on images never seen')


def _by_split(images: Iterable[ImageFile]) -> dict[str, list[ImageFile]]:
    groups: dict[str, list[ImageFile]] = {}
    for image in images:
        groups.setdefault(image.split, []).append(image)
    return groups


def _listing(folder: Path, folders: dict[Path, set[str]]) -> set[str]:
    """The names in a folder, remembered: one look at a folder is faster than one at each file."""
    if folder not in folders:
        folders[folder] = set(os.listdir(folder)) if folder.is_dir() else set()
    return folders[folder]


def _advice(path: Path, all_missing: bool, folders: dict[Path, set[str]]) -> str:
    """What may be wrong with the first of some missing images."""
    if all_missing:
        return 'data_prefix.img and the file_name of the annotation file must make one path'
    stem = path.stem.casefold()
    names = sorted(name for name in folders[path.parent] if Path(name).stem.casefold() == stem)
    other = f'there is {names[0]} instead of the first; ' if names else ''
    return f'{other}copy them there, or take them out of the annotation file'


def _map(
    function: Callable[[ImageFile], Any], images: list[ImageFile], split: str
) -> Iterator[Any]:
    """Call a function for all images, several at a time, with a progress bar on a terminal."""
    pool = ThreadPoolExecutor(_THREADS)
    try:
        yield from track(
            pool.map(function, images),
            description=f'Opening {split} images',
            total=len(images),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            transient=True,
        )
    finally:
        # Ctrl-C does not wait for what is left of a large data set.
        pool.shutdown(cancel_futures=True)


def _problem(image: ImageFile) -> tuple[bool, str] | None:
    """Whether the size is what is wrong with an image, and what is; None if nothing is."""
    try:
        with Image.open(image.path) as opened:
            opened.load()
            size, turned = opened.size, opened.getexif().get(_ORIENTATION) in _ON_THEIR_SIDE
    except Exception as err:  # decoders complain in every way there is
        # Pillow repeats the path, and may show an object's address.
        reason = 'no image' if 'cannot identify' in str(err) else str(err) or type(err).__name__
        return False, f'{image.path} ({reason})'
    if turned:
        # mmdet reads images as EXIF says.
        size = size[::-1]
    if size == image.size:
        return None
    how = ', turned as its EXIF data says' if turned else ''
    return True, f'{image.path} is {_text(size)}{how}, annotated {_text(image.size)}'


def _text(size: tuple[int, int]) -> str:
    return 'x'.join(map(str, size))
