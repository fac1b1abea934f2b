"""YOLO from v5 to v26, and darknet: a text file per image, names in data.yaml or next to it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ptnt_mm.labels.boxes import CENTRE_AND_SIZE
from ptnt_mm.labels.formats.format import (
    MISSING,
    NO_NUMBERS,
    UNKNOWN_CLASS,
    UNREADABLE,
    Collector,
    Format,
    number,
    read_text,
)
from ptnt_mm.labels.model import LabelledImage, LabelledObject, Labels, box_around
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.decoding import FORMATS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, first_few

_NAME_LISTS = ('classes.txt', 'obj.names', 'labels.txt')
_LINE = re.compile(r'\s*\d+(\s+[-+.\deE]+){4,}\s*')
_SPLITS = ('train', 'val', 'test')
_FAR = 2  # sides of the image; coordinates beyond are not fractions


def _find(tree: Tree) -> str:
    if settings := _settings(tree):
        return f'{tree.relative(settings[0])} with the names of classes'
    labelled = [image for image in tree.images if _looks_like_labels(_label_file(image))]
    images = counted(len(labelled), 'image')
    return f'{images} with a text file of numbers each' if labelled else ''


def _read(tree: Tree) -> Labels:
    collector = Collector(tree, CENTRE_AND_SIZE, in_pixels=False)
    labels = collector.labels
    file, content = _settings(tree) or (None, {})
    names, keypoints = _names(tree, content, labels), 'kpt_shape' in content
    images = _listed(tree, file, content, labels) if file else []
    if not images:
        images = [(image, None) for image in tree.images]
    without = 0
    for path, split in images:
        source = _label_file(path)
        image = collector.image(source, path, split)
        if image is None:
            continue
        if not source.is_file():
            without += 1
            continue
        try:
            lines = read_text(source).splitlines()
        except UserError as error:
            labels.report(source, UNREADABLE, str(error))
            collector.drop(image)
            continue
        collector.add(source, image, _objects(labels, source, lines, image, names, keypoints))
    if without:
        labels.notes.append(
            f'{counted(without, "image")} without a label file: treated as images without objects, '
            'as in YOLO'
        )
    if keypoints:
        labels.notes.append('keypoints are not used, only the boxes around them')
    if not names:
        labels.notes.append('there are no class names: write them to classes.txt, one per line')
    _report_strays(tree, collector, {_label_file(path) for path, _ in images})
    return collector.finish()


def _settings(tree: Tree) -> tuple[Path, dict] | None:
    """The file of settings nearest to the top, and its content."""
    files = tree.with_suffix('.yaml', '.yml')
    for file in sorted(files, key=lambda file: (len(file.parts), file.name != 'data.yaml')):
        try:
            content = yaml.safe_load(read_text(file))
        except (UserError, yaml.YAMLError, ValueError, RecursionError):
            continue
        if isinstance(content, dict) and isinstance(content.get('names'), (list, dict)):
            return file, content
    return None


def _names(tree: Tree, content: Mapping, labels: Labels) -> dict[int, str]:
    """The names of the classes by their numbers."""
    names = content.get('names') or []
    if not names:
        lists = [file for file in tree.with_suffix('.txt', '.names') if file.name in _NAME_LISTS]
        for file in lists[:1]:
            try:
                names = [line.strip() for line in read_text(file).splitlines() if line.strip()]
            except UserError as error:
                labels.report(file, UNREADABLE, str(error))
    pairs = names.items() if isinstance(names, dict) else enumerate(names)
    # Nested lists in YAML can expand to billions of names.
    known = {
        int(key): str(name)
        for key, name in pairs
        if isinstance(key, (int, str))
        and str(key).isdigit()
        and isinstance(name, (str, int, float))
    }
    for _, name in sorted(known.items()):
        labels.add_class(name)
    count = content.get('nc')
    if isinstance(count, int) and known and count != len(known):
        labels.notes.append(f'nc is {count}, but names lists {len(known)}: the names are used')
    return known


def _listed(
    tree: Tree, file: Path, content: Mapping[str, Any], labels: Labels
) -> list[tuple[Path, str]]:
    """The images of the splits in the settings, without duplicates."""
    found: dict[Path, str] = {}
    for split in _SPLITS:
        value = content.get(split) or (content.get('valid') if split == 'val' else None)
        names = value if isinstance(value, list) else [value]
        for name in (name for name in names if isinstance(name, str)):
            place = _place(tree, file, content, name)
            if place is None:
                labels.report(file, 'folders or lists that were not found', f'{split}: {name}')
            elif place.is_dir():
                images = (image for image in tree.images if image.is_relative_to(place))
                found = {image: split for image in images} | found
            else:
                found = {image: split for image in _of_list(tree, place, labels)} | found
    return list(found.items())


def _place(tree: Tree, file: Path, content: Mapping[str, Any], name: str) -> Path | None:
    """A folder or list in the settings, inside the data.

    Paths are relative to ``path``, if it exists, otherwise to the settings' folder. Roboflow writes
    '../train/images' for a folder next to its settings.
    """
    root = content.get('path') if isinstance(content.get('path'), str) else ''
    inside = re.sub(r'^(\.\.?/)+', '', name.replace('\\', '/'))
    for folder in (file.parent / root, file.parent, tree.root):
        for path in (folder / name, folder / inside):
            if tree.holds(path):
                return Path(path.resolve() if path.is_symlink() else path)
    return None


def _of_list(tree: Tree, file: Path, labels: Labels) -> Iterator[Path]:
    """The images that a text file lists, one on each line."""
    try:
        lines = read_text(file).splitlines()
    except UserError as error:
        labels.report(file, UNREADABLE, str(error))
        return
    for name in filter(None, map(str.strip, lines)):
        path = tree.find_image(name, file.parent)
        if path is None:
            labels.report(file, MISSING, tree.why_not_found(name, file.parent))
        else:
            yield path


def _label_file(image: Path) -> Path:
    """The text file of an image: in labels instead of the last images, or next to it."""
    beside = image.with_suffix('.txt')
    parts = list(image.parts)
    for i in reversed(range(len(parts) - 1)):
        if parts[i] == 'images':
            other = Path(*parts[:i], 'labels', *parts[i + 1 :]).with_suffix('.txt')
            return beside if beside.is_file() and not other.is_file() else other
    return beside


def _objects(
    labels: Labels,
    file: Path,
    lines: list[str],
    image: LabelledImage,
    names: Mapping[int, str],
    keypoints: bool,
) -> Iterator[LabelledObject]:
    """The objects of a file: five numbers are a box, more are a polygon."""
    for place, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        values, shown = [number(word) for word in words], f'line {place}: {line[:80]}'
        index = values[0]
        label = names.get(index, f'class {words[0]}')
        if any(value != value for value in values) or len(values) < 5:
            labels.report(file, NO_NUMBERS, shown, label)
            continue
        if not index.is_integer() or index < 0 or (names and index not in names):
            known = (
                f'the classes are {first_few(names.values())}' if names else 'it is not an index'
            )
            labels.report(file, UNKNOWN_CLASS, f'line {place}: {words[0]}; {known}', label)
            continue
        # Labels written by a detector have a score after each box.
        coordinates = values[1:5] if keypoints or len(values) == 6 else values[1:]
        if max(coordinates) > _FAR:
            what = 'objects in pixels, where YOLO has fractions of the image'
            labels.report(file, what, shown, label)
            continue
        if len(values) == 6 and not keypoints:
            labels.report(file, 'boxes with a sixth number, which is ignored', f'line {place}')
        if len(coordinates) % 2:
            labels.report(file, NO_NUMBERS, f'line {place} has {len(values)} numbers', label)
            continue
        yield _object(names.get(index, f'class {int(index)}'), coordinates, *image.size)


def _object(label: str, values: list[float], width: int, height: int) -> LabelledObject:
    scaled = [value * (height if i % 2 else width) for i, value in enumerate(values)]
    if len(values) == 4:
        x, y, w, h = scaled
        return LabelledObject(label, (x - w / 2, y - h / 2, w, h))
    return LabelledObject(label, box_around(scaled), [scaled])


def _looks_like_labels(file: Path) -> bool:
    try:
        lines = [line for line in read_text(file).splitlines() if line.strip()]
    except UserError:
        return False
    return bool(lines) and bool(_LINE.fullmatch(lines[0]))


def _report_strays(tree: Tree, collector: Collector, known: set[Path]) -> None:
    """Report label files without an image."""
    stems = {image.with_suffix('') for image in tree.images}
    for file in tree.with_suffix('.txt'):
        parts = [part if part != 'labels' else 'images' for part in file.parts]
        has_image = file.with_suffix('') in stems or Path(*parts).with_suffix('') in stems
        if file not in known and not has_image and _looks_like_labels(file):
            suffixes = '/'.join(sorted(FORMATS))
            collector.labels.report(file, MISSING, f'no {file.stem} with {suffixes}')


FORMAT = Format(
    'yolo',
    'YOLO (v5 to v26)',
    'a data.yaml with names, or text files of numbers in labels/ or next to images',
    ('detection', 'instance', 'semantic'),
    _find,
    _read,
)
