"""YOLO from v5 to v26, and darknet: a text file per image, names in data.yaml or next to it."""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from operator import attrgetter, ne
from pathlib import Path
from typing import Any

import yaml

from ptnt_mm.deploy.decoding import FORMATS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, first_few, name_key, nfc
from ptnt_mm.workbench.data.boxes import CENTRE_AND_SIZE
from ptnt_mm.workbench.data.coco import why_shifted
from ptnt_mm.workbench.data.labels import LabelledImage, Labels, Outcome, as_class_name
from ptnt_mm.workbench.data.many_files import grouped
from ptnt_mm.workbench.data.reading.collector import (
    MISSING,
    UNREADABLE,
    Collector,
    note_equal_names,
    read_text,
    whole_number,
)
from ptnt_mm.workbench.data.reading.format import Format
from ptnt_mm.workbench.data.reading.yolo_lines import lengths_of_boxes, objects_of
from ptnt_mm.workbench.data.tree import Tree, split_named

_NAME_LISTS = ('classes.txt', 'obj.names', 'labels.txt', '_darknet.labels')
_LINE = re.compile(r'\s*\d+(\.0*)?(\s+[-+.\deE]+){4,}\s*')
_SPLITS = ('train', 'val', 'test')
_USUAL_SETTINGS = ('data.yaml', 'data.yml', 'dataset.yaml', 'dataset.yml')
_LABELS_OF = {'images': 'labels', 'Images': 'Labels', 'IMAGES': 'LABELS'}


class _Plain(yaml.SafeLoader):
    """Reads scalars as they are written: a class may be called 007, 1.50, no or 2024-01-01."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith((':null', ':merge'))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class _Homes:
    """The folders that hold labelled images: pictures elsewhere are not read.

    An image without a label file is one without objects, but only in a folder that also has
    labelled images, or below an ``images`` next to ``labels``. The plots of ``runs`` are neither.
    """

    def __init__(self, tree: Tree):
        self._texts = {image: _usual_text(image) for image in tree.images}
        elsewhere = _texts_elsewhere(tree, self._texts)
        self._texts |= elsewhere
        self._folders: set[Path] = set()
        self._with_all_below: set[Path] = set()
        for image in tree.images:
            source = self.label_file(image)
            is_usual = source.parent != image.parent and image not in elsewhere
            homes = self._with_all_below if is_usual else self._folders
            home = _images_folder(image) if is_usual else image.parent
            if home not in homes and (_is_empty(source) or _looks_like_labels(source)):
                homes.add(home)
        self.images = [image for image in tree.images if self._holds(image)]

    def label_file(self, image: Path) -> Path:
        """The text file of an image, which may be missing."""
        return self._texts.get(image) or _usual_text(image)

    def _holds(self, image: Path) -> bool:
        return image.parent in self._folders or not self._with_all_below.isdisjoint(image.parents)


_homes_of = lru_cache(maxsize=1)(_Homes)  # the same for recognition and reading


@dataclass(frozen=True)
class _Settings:
    """A data.yaml or darknet's obj.data, or none."""

    tree: Tree
    file: Path | None
    content: Mapping[str, Any]

    @cached_property
    def places(self) -> list[tuple[str, str, Path | None]]:
        """The splits: each with a path as written, and the folder or list, if found."""
        return [(split, name, self.path_of(name, split)) for split, name in _named(self.content)]

    @property
    def found(self) -> set[Path]:
        """The folders and lists that were found."""
        return {place for *_, place in self.places if place is not None}

    @property
    def order(self) -> tuple[bool, int, int, bool]:
        """The best settings have the smallest.

        They are the file that was passed, or have most splits, are near the top, and have the usual
        name.
        """
        splits = {split for split, _, place in self.places if place is not None}
        is_passed, is_usual = self.file == self.tree.settings, self.file.name == 'data.yaml'
        return not is_passed, -len(splits), len(self.file.parts), not is_usual

    def names(self, labels: Labels) -> dict[int, str]:
        """The names of the classes by their numbers; empty without any."""
        given = self.content.get('names')
        if isinstance(given, str):  # darknet's file
            place = self.path_of(given, 'train')
            given = _lines(place, labels) if place is not None else []
        return _numbered(given or [])

    @cached_property
    def elsewhere(self) -> set[Path]:
        """The folders of other settings with the same name, as of another version."""
        if self.file is None:
            return set()
        same = {file.parent for file in self.tree.files if file.name == self.file.name}
        # Some exports have a copy of the file in the folder of each split.
        others = {folder for folder in same if split_named(folder.name) is None}
        return others.difference(self.file.parents)

    @property
    def root(self) -> str:
        """The folder that paths are relative to, as written; may be empty."""
        root = self.content.get('path')
        return root if isinstance(root, str) else ''

    @cached_property
    def shared(self) -> set[str]:
        """The words in the paths of all splits, such as a project that is called test."""
        paths = [set(_parts(f'{self.root}/{name}')) for _, name in _named(self.content)]
        return set.intersection(*paths) if paths else set()

    def path_of(self, name: str, split: str) -> Path | None:
        """A folder or list in the settings, inside the data.

        Paths are relative to ``path``, if it exists, otherwise to the settings' folder. Roboflow
        writes '../train/images' for a folder next to its settings. For paths of another machine,
        the last parts decide, as for images.
        """
        inside = _without_dots(name.replace('\\', '/'))
        for folder in (self.file.parent / self.root, self.file.parent, self.tree.root):
            for path in (folder / name, folder / inside):
                if self.tree.holds(path):
                    return Path(path.resolve() if path.is_symlink() else os.path.normpath(path))
        return self._with_tail(_parts(f'{self.root}/{name}'), split)

    def _with_tail(self, parts: list[str], split: str) -> Path | None:
        """The folder of labelled images, or the list, whose path ends like another path.

        The longest end decides; train/images ends like valid/images, but is of another split.
        """
        wanted = [part for part in parts if part not in ('', '.', '..')]
        is_file = bool(wanted) and wanted[-1].endswith(('.txt', '.names'))
        if is_file:
            known = set(self.tree.with_suffix('.txt', '.names'))
        else:
            known = {folder for image in _homes_of(self.tree).images for folder in image.parents}
            known = {folder for folder in known if folder.is_relative_to(self.tree.root)}
        known = [path for path in known if self.elsewhere.isdisjoint((path, *path.parents))]
        for first in range(len(wanted)):
            tail = wanted[first:]
            fit = [p for p in known if [part.casefold() for part in p.parts[-len(tail) :]] == tail]
            if fit:
                before = wanted[first - 1] if first and not is_file else ''
                named = None if before in self.shared else split_named(before)
                if named or len(fit) > 1:
                    fit = [p for p in fit if self.tree.split_of(p / 'image') == (named or split)]
                return fit[0] if len(fit) == 1 else None
        return None


def _find(tree: Tree) -> str:
    homes = _homes_of(tree)
    if settings := _settings(tree)[0]:
        return f'{tree.relative(settings[0].file)} with the names of classes'
    labelled = [image for image in homes.images if _looks_like_labels(homes.label_file(image))]
    images = counted(len(labelled), 'image')
    return f'{images} with a text file of numbers each' if labelled else ''


def _read(tree: Tree) -> Labels:
    collector = Collector(tree, CENTRE_AND_SIZE, in_pixels=False)
    labels = collector.labels
    homes = _homes_of(tree)
    every, unreadable = _settings(tree)
    for file, why in unreadable.items():
        if not every:
            raise UserError(f'{file}, which has names of classes, cannot be read: {why}')
        labels.report(file, UNREADABLE, why)
    settings, *others = _deciding(tree, every) or [_Settings(tree, None, {})]
    images, described = _images_of_splits(tree, homes, settings, labels)
    names = _read_names(settings, every, {homes.label_file(path) for path in described}, labels)
    sources = map(homes.label_file, images)
    numbers = _add_classes(names, sources, settings.content, labels)
    used, without, indices = Counter(), Counter(), set()
    found: list[tuple[Path, LabelledImage, list[str]]] = []
    for path, split in images.items():
        source = homes.label_file(path)
        image = collector.image(source, path, split)
        if image is None:
            continue
        used[image.split] += 1
        if not source.is_file():
            without[image.split] += 1
            continue
        try:
            lines = read_text(source).splitlines()
        except UserError as error:
            labels.report(source, UNREADABLE, str(error))
            collector.drop(image)
            continue
        found.append((source, image, lines))
        indices.update(whole_number(line.split(None, 1)[0]) for line in lines if line.strip())
    for source, shown in grouped((source, i.path.name) for source, i, _ in found).items():
        if len(shown) > 1:  # images whose names differ only in their suffix
            what = 'label files of several images'
            labels.report(source, what, first_few(shown), outcome=Outcome.KEPT)
    every_line = (line for *_, lines in found for line in lines)
    lengths = lengths_of_boxes(every_line, 'kpt_shape' in settings.content, labels)
    for source, image, lines in found:
        known = names.of(source)
        collector.add(source, image, objects_of(labels, source, lines, image, known, lengths))
    if shift := why_shifted(indices, numbers):
        raise UserError(f'{tree.root}: {shift}')
    _note_background(labels, used, without)
    _note_other_settings(settings, others, labels)
    if not numbers:
        labels.notes.append('there are no class names: write them to classes.txt, one per line')
    _report_strays(tree, homes, labels, {name_key(path.stem) for path in images})
    collector.finish()
    if not numbers:
        labels.classes.sort(key=lambda name: int(name.removeprefix('class ')))
    return labels


def _note_background(labels: Labels, used: Counter, without: Counter) -> None:
    """Note images without a label file; in a usual data set, they are few."""
    for split, count in without.items():
        if count * 2 > used[split]:
            share = f'{count:,} of {counted(used[split], "image")} ({count / used[split]:.0%})'
            labels.notes.append(
                f'warning: {f"{split}: " if split else ""}{share} have no label file, and count as '
                'images without objects: add their labels, or move them out of the folder'
            )
            return
    if total := without.total():
        labels.notes.append(
            f'{counted(total, "image")} without a label file: treated as images without objects, '
            'as in YOLO'
        )


def _note_other_settings(used: _Settings, others: Iterable[_Settings], labels: Labels) -> None:
    """Name other settings whose images are not read, as those of another version."""
    files = [
        other.file
        for other in others
        if other.found - used.found or (other.found and other.file.parent in used.elsewhere)
    ]
    if files:
        labels.notes.append(
            f'warning: only {used.tree.relative(used.file)} is read, and not '
            f'{used.tree.first_few(files, 3)}: to read another, pass a folder that has only that'
        )


@lru_cache(maxsize=1)
def _settings(tree: Tree) -> tuple[list[_Settings], dict[Path, str]]:
    """The files of settings, the best first; and why others cannot be read.

    A clone has others, such as those of models and of public data sets.
    """
    found, unreadable = [], {}
    for file in tree.with_suffix('.yaml', '.yml', '.data'):
        try:
            text = read_text(file)
            content = _of_darknet(text) if file.suffix == '.data' else yaml.load(text, _Plain)
        except (UserError, yaml.YAMLError, ValueError, RecursionError) as error:
            if file.name in _USUAL_SETTINGS:
                unreadable[file] = _why_unreadable(error)
            continue
        if not isinstance(content, dict) or not isinstance(content.get('names'), (list, dict, str)):
            continue
        if _homes_of(tree).images or any(content.get(split) for split in _SPLITS):
            found.append(_Settings(tree, file, content))
    return sorted(found, key=attrgetter('order')), unreadable


def _why_unreadable(error: Exception) -> str:
    place = getattr(error, 'problem_mark', None)
    return f'line {place.line + 1}: {error.problem}' if place else str(error)


def _deciding(tree: Tree, settings: list[_Settings]) -> list[_Settings]:
    """The settings whose splits may count: those of ``ptnt infer`` only without other labels."""
    by_hand = [each for each in settings if not tree.is_predicted(each.file)]
    return by_hand if _has_labels_by_hand(tree) else settings


@lru_cache(maxsize=1)
def _has_labels_by_hand(tree: Tree) -> bool:
    """Whether an image has a label file that ``ptnt infer`` did not write."""
    homes = _homes_of(tree)
    files = map(homes.label_file, homes.images)
    return any(file.is_file() and not tree.is_predicted(file) for file in files)


def data_set_of(settings: Path) -> Path:
    """The folder of the data set that a data.yaml describes: the file's, or the one above.

    Raises:
        UserError: if the file cannot be read, names no images, or names images elsewhere.
    """
    try:
        content = yaml.load(read_text(settings), _Plain)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f'{settings} is not valid YAML') from error
    content = content if isinstance(content, dict) else {}
    names = [name for _, name in _named(content)]
    if not names:
        raise UserError(f'{settings} names no images to train with: expected train: and val:')
    root = content.get('path') if isinstance(content.get('path'), str) else ''
    own = settings.absolute().parent
    for folder in (own, own.parent):
        below = (folder / top / _without_dots(name) for name in names for top in ('', root))
        paths = map(Path, map(os.path.normpath, below))
        if any(path.exists() and path.is_relative_to(folder) for path in paths):
            return folder
    raise UserError(
        f'the images of {settings} are not next to it ({first_few(names)}): put the file into the '
        'folder that has the images and their labels, and pass that folder'
    )


def _of_darknet(text: str) -> dict[str, str]:
    """Darknet's settings, such as 'train = data/train.txt'."""
    pairs = (line.split('=', 1) for line in text.splitlines() if '=' in line)
    return {key.strip(): value.strip() for key, value in pairs}


@dataclass(frozen=True)
class _Names:
    """The names of the classes by their numbers; sets that were put together may have several.

    Attributes:
        given: Those of the settings that were chosen.
        described: The label files of the images in their splits.
        settings: Those of all settings, by the folder of the file.
        lists: Those of lists, by their folders.
    """

    given: Mapping[int, str]
    described: Collection[Path]
    settings: Mapping[Path, Mapping[int, str]]
    lists: Mapping[Path, Mapping[int, str]]

    def of(self, source: Path) -> Mapping[int, str]:
        """The names for a label file: of its settings, or of the nearest above it."""
        if source in self.described and self.given:
            return self.given
        nearest = (
            known[folder]
            for known in (self.settings, self.lists)
            for folder in source.parents
            if folder in known
        )
        return next(chain(nearest, [self.given] if self.given else self.lists.values()), {})


def _read_names(
    chosen: _Settings, every: Iterable[_Settings], described: Collection[Path], labels: Labels
) -> _Names:
    given, settings, lists = chosen.names(labels), {}, {}
    for each, known in ((chosen, given), *((each, each.names(Labels())) for each in every)):
        if known:
            settings.setdefault(each.file.parent, known)
    for file in chosen.tree.with_suffix('.txt', '.names', '.labels'):
        if file.name in _NAME_LISTS:
            lines = _lines(file, Labels() if settings else labels)
            lists.setdefault(file.parent, _numbered(lines))
    return _Names(given, described, settings, lists)


def _add_classes(
    names: _Names, sources: Iterable[Path], content: Mapping[str, Any], labels: Labels
) -> set[int]:
    """Add the classes that have names; return their numbers."""
    used = [names.given] if names.given else [] if names.settings else [*names.lists.values()]
    for known in map(names.of, sources):
        if known not in used:
            used.append(known)
    for known in used:
        for _, name in sorted(known.items()):
            labels.add_class(name)
        note_equal_names(labels, 'classes', {i: as_class_name(name) for i, name in known.items()})
    count, known = whole_number(content.get('nc')), names.given
    if count and known and count != len(known):
        labels.notes.append(f'nc is {count}, but names lists {len(known)}: the names are used')
    return {number for known in used for number in known}


def _lines(file: Path, labels: Labels) -> list[str]:
    """The lines of a text file; none, and a report, if it cannot be read.

    Of names, an empty line between others counts, too.
    """
    try:
        return [line.strip() for line in read_text(file).strip('\r\n').splitlines()]
    except UserError as error:
        labels.report(file, UNREADABLE, str(error))
        return []


def _numbered(names: list | dict) -> dict[int, str]:
    pairs = names.items() if isinstance(names, dict) else enumerate(names)
    # Nested lists in YAML can expand to billions of names.
    return {
        int(key): str(name)
        for key, name in pairs
        if isinstance(key, (int, str))
        and str(key).isdecimal()
        and isinstance(name, str)
        and name.strip()
    }


def _images_of_splits(
    tree: Tree, homes: _Homes, settings: _Settings, labels: Labels
) -> tuple[dict[Path, str | None], set[Path]]:
    """The images of the splits, each with its split; and those that the settings describe.

    Splits that the settings do not name, or whose places were not found, are those of lists, then
    of folders. Images in no split are for training if there are no others to train on.
    """
    found: dict[Path, str | None] = {}
    given = settings.places
    missing = {split for split, _, place in given if place is None}
    missing |= set(_SPLITS[: 2 if given else 3]) - {split for split, *_ in given}
    lists = [
        (split, name, place)
        for split, name, place in _lists(tree, homes)
        if split in missing and settings.elsewhere.isdisjoint(place.parents)
    ]
    missing -= {split for split, *_ in lists}
    for split, name, place in given:
        if place is None:
            detail = f'{split}: {name}'
            labels.report(settings.file, 'folders or lists that were not found', detail)
        elif place.is_dir():
            inside = [image for image in homes.images if image.is_relative_to(place)]
            # All of a test split may be without labels.
            inside = inside or [image for image in tree.images if image.is_relative_to(place)]
            _add_split(found, inside, split, labels)
        else:
            _add_split(found, _of_list(tree, place, labels, split), split, labels)
    described = set(found)
    for split, _, place in lists:
        _add_split(found, _of_list(tree, place, labels, split), split, labels)
    left = {image: tree.split_of(image) for image in homes.images if image not in found}
    if not found:
        return left, described
    has_train = 'train' in {*found.values(), *(missing & set(left.values()))}
    wanted = missing if has_train else missing | {None}
    for image, split in left.items():
        # Images that a model labelled join those that were labelled and split before.
        is_new = _has_labels_by_hand(tree) and tree.is_predicted(homes.label_file(image))
        if is_new or (split in wanted and settings.elsewhere.isdisjoint(image.parents)):
            found[image] = split
        elif homes.label_file(image).is_file():
            labels.report(image, 'labelled images that are in none of the splits')
    return found, described


def _lists(tree: Tree, homes: _Homes) -> list[tuple[str, str, Path]]:
    """The lists of images that are called after a split: train.txt, otherwise autosplit_train.txt.

    In the form of ``_Settings.places``, and in the order of the splits.
    """
    of_images = set(map(homes.label_file, homes.images))
    texts = [file for file in tree.with_suffix('.txt') if file not in of_images]
    if _has_labels_by_hand(tree):
        texts = [file for file in texts if not tree.is_predicted(file)]
    for prefix in ('', 'autosplit_'):
        found = [
            (split, file.name, file)
            for file in texts
            if file.stem.startswith(prefix)
            and (split := split_named(file.stem.removeprefix(prefix)))
            and any(_of_list(tree, file, Labels(), split))
        ]
        if found:
            return sorted(found, key=lambda each: _SPLITS.index(each[0]))
    return []


def _add_split(found: dict[Path, str], images: Iterable[Path], split: str, labels: Labels) -> None:
    """Add the images of a split; the first split of an image counts."""
    others = Counter(found.setdefault(image, split) for image in images)
    others.pop(split, None)
    for other, count in others.items():
        labels.notes.append(
            f'{counted(count, "image")} of {split} are also in {other}, and stay there'
        )


def _parts(path: str) -> list[str]:
    """The parts of a path of any system, in lower case."""
    return re.split(r'[\\/]+', path.casefold())


def _without_dots(name: str) -> str:
    """A path without the './' and '../' at its beginning."""
    return re.sub(r'^(\.\.?/)+', '', name)


def _named(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The folders and lists in settings, as written, each with its split."""
    values = {split: content.get(split) for split in _SPLITS}
    values['val'] = values['val'] or content.get('valid')
    return [
        (split, name)
        for split, value in values.items()
        for name in (value if isinstance(value, list) else [value])
        if isinstance(name, str) and name.strip()
    ]


def _of_list(tree: Tree, file: Path, labels: Labels, split: str) -> Iterator[Path]:
    """The images that a text file lists, one on each line."""
    for name in filter(None, _lines(file, labels)):
        path = tree.find_image(name, file.parent, split)
        if path is None:
            labels.report(file, MISSING, tree.why_not_found(name, file.parent))
        else:
            yield path


def _texts_elsewhere(tree: Tree, usual: Mapping[Path, Path]) -> dict[Path, Path]:
    """The text files whose path differs from that of one image in the name of one folder.

    Not every tool calls the folders ``images`` and ``labels``. A text beside an image may have its
    accents written in another way.
    """
    known, found = set(usual.values()), {}
    for text in tree.with_suffix('.txt'):
        if text not in known:
            near = (image for image in tree.with_stem(text.stem) if _is_parallel(image, text))
            if len(images := list(near)) == 1 and not usual[images[0]].is_file():
                found[images[0]] = text
    return found


def _is_parallel(image: Path, text: Path) -> bool:
    ours, theirs = ([nfc(part) for part in path.parts[:-1]] for path in (image, text))
    differing = sum(map(ne, ours, theirs))
    is_beside = not differing and nfc(image.stem) == nfc(text.stem) and _looks_like_labels(text)
    return len(ours) == len(theirs) and (differing == 1 or is_beside)


def _usual_text(image: Path) -> Path:
    """The text file of an image: in labels instead of the last images, or next to it."""
    beside = image.with_suffix('.txt')
    folder = _labels_folder(image.parent)
    other = folder / beside.name if folder else beside
    return other if other.is_file() or not beside.is_file() else beside


@lru_cache(maxsize=1024)
def _labels_folder(images: Path) -> Path | None:
    """The folder in labels, parallel to one in images."""
    top = _images_folder(images / 'image')
    return top and top.with_name(_LABELS_OF[top.name]) / images.relative_to(top)


def _images_folder(image: Path) -> Path | None:
    """The last ``images`` above an image."""
    return next((folder for folder in image.parents if folder.name in _LABELS_OF), None)


def _looks_like_labels(file: Path) -> bool:
    try:
        lines = [line for line in read_text(file).splitlines() if line.strip()]
    except UserError:
        return False
    return bool(lines) and bool(_LINE.fullmatch(lines[0]))


def _is_empty(file: Path) -> bool:
    return file.is_file() and not file.stat().st_size


def _report_strays(tree: Tree, homes: _Homes, labels: Labels, used: Collection[str]) -> None:
    """Report label files without an image; used are the names of images without suffix."""
    of_images = {image.with_suffix('') for image in tree.images}
    of_images |= {homes.label_file(image).with_suffix('') for image in tree.images}
    strays = grouped(
        (file.parent, file)
        for file in tree.with_suffix('.txt')
        if file.with_suffix('') not in of_images and _looks_like_labels(file)
    )
    for folder, files in strays.items():
        if all(name_key(file.stem) in used for file in files):
            # Predictions, or a copy: one line for all.
            detail = counted(len(files), 'file')
            labels.report(folder, 'label files in a folder without images', detail)
            continue
        suffixes = '/'.join(sorted(FORMATS))
        for file in files:
            labels.report(file, MISSING, f'no {file.stem} with {suffixes}')


FORMAT = Format(
    __name__,
    title='YOLO (v5 to v26)',
    looks_for='a data.yaml with names, or text files of numbers in labels/ or next to images',
    tasks=('detection', 'instance', 'semantic'),
    order=50,
    find=_find,
    read=_read,
    note='Also darknet, and exports of labelImg, CVAT and Label Studio. [YOLO](#yolo) below',
)
