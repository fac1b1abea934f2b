"""Collects the labels of a data set, and reads the files that have them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path, PurePosixPath
from typing import TypeVar
from xml.etree import ElementTree

import numpy as np

from ptnt_mm.deploy.decoding import FORMATS, why_not_an_image
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, first_few, printable
from ptnt_mm.workbench.data.boxes import (
    CORNER_AND_SIZE,
    CORNERS,
    Boxes,
    BoxForm,
    Cause,
    Listed,
    find_cause,
    judge,
    judge_repeats,
    near_the_corner,
    of_stored_pixels,
)
from ptnt_mm.workbench.data.encodings import decoded_text, is_utf16
from ptnt_mm.workbench.data.image_files import DROP_ROTATION, is_on_its_side, size_as_read
from ptnt_mm.workbench.data.labels import (
    LabelledImage,
    LabelledObject,
    LabelRule,
    Labels,
    Outcome,
    as_class_name,
    box_between,
)
from ptnt_mm.workbench.data.many_files import grouped
from ptnt_mm.workbench.data.masks import usable
from ptnt_mm.workbench.data.tree import Tree

Content = TypeVar('Content')

_DECLARED = re.compile(rb'\s*<\?xml[^>]*?\sencoding\s*=\s*["\']([\w.:-]+)')

MISSING = 'images that were not found'
DAMAGED = 'images that cannot be opened'
UNREADABLE = 'label files that cannot be read'
EMPTY = 'it is empty'
NO_NUMBERS = 'objects without usable coordinates'
ONLY_CLASS = 'object'  # of objects without a class
NO_AREA = 'shapes that are neither boxes nor areas'


@dataclass(frozen=True)
class _Written:
    """An object as its file has it."""

    file: Path
    image: LabelledImage
    item: LabelledObject
    name: str  # of the image

    def __str__(self) -> str:
        numbers = ', '.join(f'{value:g}' for value in self.item.box)
        width, height = self.image.size
        return f'{self.item.label} [{numbers}] in {self.name} ({width}x{height})'

    @property
    def for_rules(self) -> Listed:
        """The object in the form that the rules about repeated ones take."""
        item, place = self.item, (self.image.path, self.item.box)
        return Listed(place, item.label, bool(item.ignored), item.segmentation)


class Collector:
    """Collects the labels of a data set; reports whatever does not fit, and continues.

    Objects are examined by :meth:`finish`, all together and before any is clipped: many boxes that
    do not fit into their images have one cause.

    Args:
        tree: The folder.
        form: The form in which the format has boxes.
        in_pixels: Whether its boxes are in pixels, and not shares of the image.
        if_other_size: Advice if images have another size than the labels state.

    Attributes:
        tree: The folder.
        labels: The collected labels; images are added by :meth:`finish`.
    """

    def __init__(
        self,
        tree: Tree,
        form: BoxForm = CORNERS,
        in_pixels: bool = True,
        if_other_size: str = '',
    ):
        self.tree = tree
        self.labels = Labels()
        self._form, self._in_pixels = form, in_pixels
        self._if_other_size = if_other_size
        # Only COCO states boxes next to masks; elsewhere they are made from them.
        self._states_boxes = form is CORNER_AND_SIZE
        self._images: dict[Path, LabelledImage] = {}
        self._written: list[_Written] = []
        self._emptied: set[Path] = set()
        self._by_hand: set[Path] = set()
        self._other_splits: dict[Path, dict[str, None]] = {}  # ordered sets

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
            self.labels.report(path, DAMAGED, f'it {why_not_an_image(path)}')
            return None
        if stated and all(stated) and stated != size:
            why = _why_other(path, stated, size)
            why += f'; {self._if_other_size}' if self._if_other_size else ''
            self.labels.report(file, 'labels for a different image size', why)
            self.labels.aside.add(path)
            return None
        if not self.tree.is_predicted(file):
            self._by_hand.add(path)
        known = self._images.get(path)
        if known is None or (known.split is None and split):
            self._images[path] = LabelledImage(path, size, split)
        elif split not in (None, known.split):
            self._other_splits.setdefault(path, {})[split] = None
        return self._images[path]

    def own_image(self, file: Path, name: str) -> Path | None:
        """Find the image of a label file that has one: by its own name, then by the one in it.

        The name in it is wrong if the image and the file were renamed together, or if the file was
        copied from that of another image.

        Args:
            file: The label file.
            name: The name of the image in it; may be empty.
        """
        suffix = PurePosixPath(name).suffix
        suffix = suffix if suffix.lower() in FORMATS else '.jpg'
        own = self.tree.find_image(f'{file.stem}{suffix}', file.parent)
        named = self.tree.find_image(name, file.parent) if name else None
        if own is None or (named is not None and own.stem == named.stem):
            return named
        if PurePosixPath(name).stem not in ('', file.stem):
            detail = f'it names {printable(name)}, but {own.name} is used'
            what = 'label files that name a different image'
            self.labels.report(file, what, detail, outcome=Outcome.KEPT)
        return own

    def read(
        self, files: Iterable[Path], content_of: Callable[[Path], Content], *errors: type[Exception]
    ) -> Iterator[tuple[Path, Content]]:
        """Read label files; report those at which a UserError, or one of ``errors``, is raised."""
        for file in files:
            try:
                content = content_of(file)
            except (UserError, *errors) as error:
                self.labels.report(file, UNREADABLE, str(error))
            else:
                yield file, content

    def add(self, file: Path, image: LabelledImage, objects: Iterable[LabelledObject]) -> None:
        """Add objects to an image, as they are written.

        ``objects`` may be an iterator that reports objects as it skips them: an image that loses
        all its objects is skipped, because training would take it for background.
        """
        problems, name = len(self.labels.problems), self.tree.name_of(image.path)
        for item in objects:
            stated = item.box if self._states_boxes else None
            mask, rule, why = usable(item.segmentation, image.size, stated)
            if rule is not None:
                detail = f'{item.label} in {name}{f": {why}" if why else ""}'
                outcome = rule.outcome if mask else Outcome.AS_BOX
                self.labels.report(file, rule.what, detail, item.label, outcome)
            item = replace(item, label=as_class_name(item.label), segmentation=mask)
            self._written.append(_Written(file, image, item, name))
        if len(self.labels.problems) > problems:
            self._emptied.add(image.path)

    def set(self, image: LabelledImage) -> None:
        """Replace the entry of an image."""
        if image.label is not None:
            image = replace(image, label=as_class_name(image.label))
        self._images[image.path] = image

    def drop(self, image: LabelledImage) -> None:
        """Remove an image."""
        del self._images[image.path]

    def finish(self) -> Labels:
        """The labels, with all images but those that lost all their objects.

        Objects are clipped to their images, as by every host, and without duplicates.

        Raises:
            UserError: if all boxes are wrong for one cause.
        """
        self._report_splits()
        self._written = [entry for entry in self._written if entry.image.path in self._images]
        self._leave_out_predictions()
        boxes = self._boxes()
        if self._in_pixels and boxes.is_beyond.any():
            self._refuse(of_stored_pixels(boxes, self._are_turned()), np.arange(len(boxes.values)))
        for group in self._groups():
            of_group = Boxes(boxes.values[group], boxes.sizes[group])
            self._refuse(find_cause(of_group, self._form, self._in_pixels), group)
        if (near := near_the_corner(boxes)) is not None:
            self.labels.notes.append('warning: {}: {}'.format(*near))
        left = np.ones(len(self._written), bool)
        for rule, chosen in judge(boxes):
            if (advice := rule.advice_for(chosen)) != rule.advice:
                self.labels.notes.append(f'{chosen.mean():.0%} of the {rule.what}: {advice}')
            left &= self._report(rule, chosen, self._written)
        self._emptied |= {entry.image.path for entry in compress(self._written, ~left)}
        rows = zip(self._written, boxes.inside.tolist(), left, strict=True)
        kept = [
            replace(entry, item=replace(entry.item, box=box_between(*corners)))
            for entry, corners, is_left in rows
            if is_left
        ]
        self._add_images(self._without_repeats(kept))
        return self.labels

    def _report_splits(self) -> None:
        """Report each image that label files place in several splits, once."""
        for path, others in self._other_splits.items():
            if path in self._images:
                detail = f'{", ".join(others)}; {self._images[path].split} is kept'
                self.labels.report(path, 'images in several splits', detail, outcome=Outcome.KEPT)

    def _leave_out_predictions(self) -> None:
        """Leave out what ``ptnt infer`` found in images that have other labels as well."""
        files = {entry.file for entry in self._written}
        predicted = set(filter(self.tree.is_predicted, files))

        def is_replaced(entry: _Written) -> bool:
            return entry.file in predicted and entry.image.path in self._by_hand

        if images := {entry.image.path for entry in filter(is_replaced, self._written)}:
            self.labels.notes.append(
                f'{counted(len(images), "image")} with labels besides those that ptnt infer wrote: '
                'only the others are used'
            )
            self._written = [entry for entry in self._written if not is_replaced(entry)]

    def _without_repeats(self, entries: list[_Written]) -> list[_Written]:
        left = np.ones(len(entries), bool)
        for rule, chosen in judge_repeats([entry.for_rules for entry in entries]):
            left &= self._report(rule, chosen, entries)
        return [entry for entry, is_left in zip(entries, left, strict=True) if is_left]

    def _report(self, rule: LabelRule, chosen: np.ndarray, entries: list[_Written]) -> np.ndarray:
        """Report the chosen objects, (N,) bool; return which of all are kept."""
        for entry in compress(entries, chosen):
            self.labels.report(entry.file, rule.what, str(entry), entry.item.label, rule.outcome)
        return rule.remaining(chosen)

    def _add_images(self, entries: list[_Written]) -> None:
        """Add the images with their objects, without those that lost all."""
        objects: dict[Path, list[LabelledObject]] = {path: [] for path in self._images}
        for entry in entries:
            self.labels.add_class(entry.item.label)
            objects[entry.image.path].append(entry.item)
        for path, of_image in objects.items():
            if path in self._emptied and not of_image:
                self.labels.report(path, 'images that lost all of their objects')
            else:
                self.labels.images.append(replace(self._images[path], objects=tuple(of_image)))

    def _boxes(self) -> Boxes:
        values = [entry.item.box for entry in self._written]
        sizes = [entry.image.size for entry in self._written]
        return Boxes(np.array(values, float).reshape(-1, 4), np.array(sizes, float).reshape(-1, 2))

    def _groups(self) -> list[np.ndarray]:
        """The boxes of each file that labels several images, by index; and all others."""
        images = grouped((entry.file, entry.image.path) for entry in self._written)
        several = {file for file, paths in images.items() if len(set(paths)) > 1}
        groups = grouped(
            (entry.file if entry.file in several else None, i)
            for i, entry in enumerate(self._written)
            if entry.item.segmentation is None or self._states_boxes
        )
        return list(map(np.array, groups.values()))

    def _are_turned(self) -> np.ndarray:
        """Whether EXIF data swaps the sides of each box's image, (N,) bool."""
        turned = {path: is_on_its_side(path) for path in self._images}
        return np.array([turned[entry.image.path] for entry in self._written], bool)

    def _refuse(self, cause: Cause | None, group: np.ndarray) -> None:
        """Raise an error if there is a cause why boxes of a group are wrong; note it if unsure."""
        if cause is None:
            return
        chosen = [self._written[i] for i in group[cause.chosen]]
        files = {entry.file for entry in chosen}
        where = self.tree.relative(files.pop()) if len(files) == 1 else self.tree.root
        listed = f'{len(chosen)} of {len(group)} {cause.what}: {first_few(map(str, chosen))}'
        if cause.is_sure:
            raise UserError(f'{where}: {listed}\n{cause.advice}')
        self.labels.notes.append(f'warning: {where}: {listed}: {cause.advice}')


def read_text(file: Path) -> str:
    """The text of a label file.

    Raises:
        UserError: if it cannot be read, or is not text.
    """
    try:
        return decoded_text(file.read_bytes())
    except OSError as error:
        raise UserError(f'{error.strerror}') from error
    except UnicodeDecodeError as error:
        raise UserError('it is not text in UTF-8 or UTF-16: save it as UTF-8') from error


def read_xml(file: Path) -> ElementTree.Element:
    """Parse an XML file.

    It may come from anywhere. Python's expat reads no other files, and refuses entities that expand
    to more than a hundred times the file.

    Raises:
        UserError: if it cannot be read, or cannot be parsed.
    """
    try:
        root = ElementTree.fromstring(_xml_text(file.read_bytes()))
    except OSError as error:
        raise UserError(f'{error.strerror}') from error
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise UserError(f'it is not XML, or is truncated: {error}') from error
    for element in root.iter():
        element.tag = element.tag.rpartition('}')[2]  # a name space
    return root


def _xml_text(content: bytes) -> str:
    """The text of an XML file; expat itself knows few encodings."""
    declared = _DECLARED.match(content)
    name = declared[1].decode() if declared else 'utf-8'
    # A file whose declaration can be read as ASCII is not in UTF-16, even if it claims to be.
    if is_utf16(content) or name.lower().startswith(('utf-16', 'utf-8')):
        return decoded_text(content)
    return content.decode(name)


def text_of(element: ElementTree.Element, path: str) -> str:
    """The text of a part of an XML element, without spaces around it; empty if missing."""
    return (element.findtext(path) or '').strip()


def number(text: object) -> float:
    """Parse a number of a label file; NaN if invalid, as boxes may not be."""
    try:
        return float(text)
    except (TypeError, ValueError, OverflowError):
        return float('nan')


def is_set(value: object) -> bool:
    """Whether a flag of a label file is set; tables and XML write '0', '1.0' or 'True' as text."""
    return number(value) > 0 or str(value).strip().lower() == 'true'


def whole_number(text: object) -> int:
    """Parse an integer of a label file; 0 if it is invalid or negative."""
    value = number(text)
    return int(value) if 0 <= value < 2**31 else 0


def _why_other(path: Path, stated: tuple[int, int], size: tuple[int, int]) -> str:
    text = f'they are for {stated[0]} x {stated[1]} pixels, {path.name} has {size[0]} x {size[1]}'
    if stated == size[::-1] and is_on_its_side(path):
        text += f', rotated by its EXIF data: {DROP_ROTATION}'
    return text


def note_equal_names(labels: Labels, what: str, names: Mapping[object, str]) -> None:
    """Add a note about each name that several numbers, which are ``what``, have in common."""
    for name, numbers in grouped((name, str(number)) for number, name in names.items()).items():
        if len(numbers) > 1:
            labels.notes.append(f'{what} {first_few(numbers)} are all called {name}: one class')
