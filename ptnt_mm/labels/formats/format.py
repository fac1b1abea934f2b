"""Base classes of label formats and their readers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from PIL import Image

from ptnt_mm.data.image_files import size_as_read
from ptnt_mm.labels.masks import checked
from ptnt_mm.labels.model import LabelledImage, LabelledObject, Labels, fitted
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.decoding import DECODERS
from ptnt_mm.utils.errors import UserError

MISSING = 'images that were not found'
DAMAGED = 'images that cannot be opened'
UNREADABLE = 'label files that cannot be read'
EMPTY = 'it is empty'
UNKNOWN_CLASS = 'objects of an unknown class'
NO_NUMBERS = 'objects without usable coordinates'


@dataclass(frozen=True)
class Format:
    """A way to store labels.

    Attributes:
        name: Its name for ``--format``.
        title: Its usual name.
        looks_for: A description of the files that identify it.
        tasks: Tasks that it has labels for.
        find: Searches a folder; returns a description of what was found, or an empty string.
        read: Reads the labels.
    """

    name: str
    title: str
    looks_for: str
    tasks: tuple[str, ...]
    find: Callable[[Tree], str]
    read: Callable[[Tree], Labels]


class Collector:
    """Collects the labels of a data set; reports whatever does not fit, and continues.

    Attributes:
        tree: The folder.
        labels: The collected labels; images are added by :meth:`finish`.
    """

    def __init__(self, tree: Tree):
        self.tree = tree
        self.labels = Labels()
        self._images: dict[Path, LabelledImage] = {}
        self._emptied: set[Path] = set()

    def image(
        self,
        file: Path,
        path: Path | None,
        split: str | None = None,
        stated: tuple[int, int] | None = None,
        name: str = '',
    ) -> LabelledImage | None:
        """Add an image, or find it if it was added before.

        Args:
            file: Its label file.
            path: The image; None if it was not found.
            split: Split of the label file; by default from the name of a folder.
            stated: (width, height) for which the labels were made, if the file contains it.
            name: Its name in the label file.

        Returns:
            The image without the objects; None if it cannot be used.
        """
        if path is None:
            self.labels.report(file, MISSING, self.tree.why_not_found(name, file.parent))
            return None
        split = split or self.tree.split_of(path)
        size = size_as_read(path)
        if size is None:
            self.labels.report(path, DAMAGED, f'named by {file.name}')
            return None
        if stated and all(stated) and stated != size:
            self.labels.report(
                file, 'labels for a different image size', _why_other(path, stated, size)
            )
            self.labels.aside.add(path)
            return None
        known = self._images.get(path)
        if known is not None and split not in (None, known.split):
            self.labels.report(path, 'images in several splits', f'{split}; {known.split} is kept')
        elif known is None:
            self._images[path] = LabelledImage(path, size, split)
        return self._images[path]

    def add(self, file: Path, image: LabelledImage, objects: Iterable[LabelledObject]) -> None:
        """Add objects to an image, clipped to it and without duplicates.

        ``objects`` may be an iterator that reports objects as it skips them: an image that loses
        all its objects is skipped, because training would take it for background.
        """
        kept = list(self._images[image.path].objects)
        problems = len(self.labels.problems)
        for item in objects:
            mask, fault = checked(item.segmentation, image.size)
            if fault:
                detail = f'{fault}: {item.label} in {image.path.name}'
                self.labels.report(file, 'masks that cannot be drawn', detail)
                item = replace(item, segmentation=mask)
            whole, fault = fitted(item, image.size)
            if fault:
                self.labels.report(
                    file, fault, f'{item.label} {_numbers(item.box)} in {image.size}'
                )
            if whole in kept:
                self.labels.report(file, 'duplicate objects', item.label)
            elif whole is not None:
                self.labels.add_class(whole.label)
                kept.append(whole)
        self._images[image.path] = replace(image, objects=tuple(kept))
        if len(self.labels.problems) > problems:
            self._emptied.add(image.path)

    def set(self, image: LabelledImage) -> None:
        """Replace the entry of an image."""
        self._images[image.path] = image

    def drop(self, image: LabelledImage) -> None:
        """Remove an image."""
        del self._images[image.path]

    def finish(self) -> Labels:
        """The labels, with all images but those that lost all their objects."""
        for path in sorted(self._emptied & self._images.keys()):
            if not self._images[path].objects:
                self.labels.report(path, 'images skipped, as none of their objects can be used')
                del self._images[path]
        self.labels.images = list(self._images.values())
        return self.labels


def read_text(file: Path) -> str:
    """The text of a label file.

    Raises:
        UserError: if it cannot be read, or is not text.
    """
    try:
        return file.read_text(encoding='utf-8-sig')
    except OSError as error:
        raise UserError(f'{error.strerror}') from error
    except UnicodeDecodeError as error:
        raise UserError('it is not text in UTF-8') from error


def read_xml(file: Path) -> ElementTree.Element:
    """Parse an XML file that defines no entities: a few lines of them can expand to gigabytes.

    Raises:
        UserError: if it cannot be read, is not XML, or defines entities.
    """

    def refuse(name: str, *_: object) -> None:
        raise UserError(f'it defines the XML entity {name!r}, which no labelling tool does')

    guard = expat.ParserCreate()
    guard.EntityDeclHandler = refuse
    try:
        content = file.read_bytes()
        guard.Parse(content, True)
        return ElementTree.fromstring(content)
    except OSError as error:
        raise UserError(f'{error.strerror}') from error
    except (expat.ExpatError, ElementTree.ParseError, ValueError, LookupError) as error:
        raise UserError(f'it is not XML, or is truncated: {error}') from error


def text_of(element: ElementTree.Element, path: str) -> str:
    """The text of a part of an XML element, without spaces around it; empty if missing."""
    return (element.findtext(path) or '').strip()


def number(text: object) -> float:
    """Parse a number of a label file; NaN if invalid, which :func:`fitted` reports."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return float('nan')


def whole_number(text: object) -> int:
    """Parse an integer of a label file; 0 if it is invalid or negative."""
    value = number(text)
    return int(value) if 0 <= value < 2**31 else 0


def _why_other(path: Path, stated: tuple[int, int], size: tuple[int, int]) -> str:
    text = f'they are for {stated[0]} x {stated[1]} pixels, {path.name} has {size[0]} x {size[1]}'
    with Image.open(path, formats=DECODERS) as stored:
        if stored.size == stated:
            text += ', rotated by its EXIF entry: save it upright'
    return text


def _numbers(box: tuple[float, ...]) -> str:
    return '[' + ', '.join(f'{value:g}' for value in box) + ']'
