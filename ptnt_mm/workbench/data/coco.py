"""COCO's annotation files, reduced to valid entries."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.numbers import is_number
from ptnt_mm.utils.text import first_few
from ptnt_mm.workbench.data.encodings import decoded_text

JOINED = 'if files were joined, keep them apart, or renumber the ids of one'
"""Advice about ids that are used twice."""

_KINDS = ('images', 'annotations', 'categories')


@dataclass(frozen=True)
class CocoFile:
    """The content of an annotation file.

    Attributes:
        path: The file.
        images: By their ids.
        annotations: Those of known images.
        categories: In the order of the file, which is the order of mmdet's labels.
        problems: Errors in its format, each with what to do about it. Invalid entries are not in
            the lists above.
    """

    path: Path
    images: dict[int | str, dict]
    annotations: list[dict]
    categories: list[dict]
    problems: list[tuple[str, str]]

    @property
    def names(self) -> dict[int | str, str]:
        """The names of the categories by their ids."""
        return {category['id']: category['name'] for category in self.categories}


def read_coco(path: Path, needed: tuple[str, ...] = _KINDS) -> CocoFile:
    """Read an annotation file.

    Args:
        path: The file.
        needed: The lists that must be there.

    Raises:
        UserError: if it cannot be read, is not JSON, or lacks one of the lists.
    """
    content = _lists(path, needed)
    problems = []
    entries = {}
    for kind in _KINDS:
        entries[kind], found = _whole(content[kind], kind, _KEYS[kind])
        problems += found
        counts = Counter(entry['id'] for entry in entries[kind])
        repeated = [f'{number} ({count} times)' for number, count in counts.items() if count > 1]
        if repeated:
            what = f'ids used by several {kind}: {first_few(repeated)}'
            problems.append((what, f'the later one replaces the earlier: {JOINED}'))
    images = {image['id']: image for image in entries['images']}
    categories = {category['id'] for category in entries['categories']}
    problems += _strangers(entries['annotations'], 'image_id', images.keys())
    problems += _strangers(entries['annotations'], 'category_id', categories)
    annotations = [entry for entry in entries['annotations'] if entry['image_id'] in images]
    return CocoFile(path, images, annotations, entries['categories'], problems)


def read_json(path: Path, as_hosts: bool = True) -> Any:
    """Read a JSON file.

    Args:
        path: The file.
        as_hosts: Whether only UTF-8 without a mark is accepted, as by the hosts.

    Raises:
        UserError: if it cannot be read, or is not JSON.
    """
    try:
        content = path.read_bytes()
        return json.loads(content.decode() if as_hosts else decoded_text(content))
    except OSError as err:
        raise UserError(f'{path} cannot be read: {err.strerror}') from err
    except UnicodeDecodeError as err:
        raise UserError(f'{path} is not text in UTF-8: save it as UTF-8 ({err.reason})') from err
    except (ValueError, RecursionError) as err:
        raise UserError(f'{path} is not JSON, or is truncated: {err}') from err


def not_dicts(kind: str) -> str:
    """The name of this finding about entries."""
    return f'{kind} that are not dicts'


def without_usable(kind: str, key: str) -> str:
    """The name of the finding about entries whose value of a key is missing or wrong."""
    return f'{kind} without a usable {key!r}'


def not_in_file(key: str) -> str:
    """The name of the finding about annotations whose image or category is missing."""
    return f'annotations whose {key} is not in the file'


def why_shifted(used: set, known: set) -> str:
    """Say that labels number classes from another start than their names; empty if they do not.

    A small data set may have no objects of some classes. So it is enough that all ids in use are
    those of a shifted list, and that one of them is not a class.

    Args:
        used: Ids of classes that labels have.
        known: Ids of the classes that have names.
    """
    if len(known) < 2 or not all(isinstance(value, int) for value in used | known):
        return ''
    for step in (1, -1):
        shifted = {value + step for value in known}
        if used <= shifted and (strangers := used - known):
            return (
                f'the labels number classes from {min(shifted)}, but the names start at '
                f'{min(known)}, so every object may have the wrong class: change the numbers, or '
                f'add a name for {min(strangers)} if it is a class too'
            )
    return ''


def _lists(path: Path, needed: tuple[str, ...]) -> dict[str, list]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise UserError(
            f"{path} is not in COCO's format: expected a dict with {', '.join(_KINDS)}, "
            f'found a {type(content).__name__}'
        )
    content = {kind: [] for kind in _KINDS if kind not in needed} | content
    missing = [kind for kind in _KINDS if not isinstance(content.get(kind), list)]
    if missing:
        raise UserError(
            f"{path} is not in COCO's format: it has no list {', '.join(missing)}, only "
            f'{first_few(map(str, content)) or "nothing"}'
        )
    return {kind: content[kind] for kind in _KINDS}


def _is_id(value: object) -> bool:
    # A table's export may have floats: 1.0 is the same key as 1.
    return isinstance(value, (int, float, str))


def _are_numbers(value: object) -> bool:
    return isinstance(value, list) and all(map(is_number, value))


_KEYS = {
    'images': ('id', 'file_name', 'height', 'width'),
    'annotations': ('id', 'image_id', 'category_id', 'bbox', 'area'),
    'categories': ('id', 'name'),
}
"""The keys that mmdet reads without a default."""

_NAME = (lambda value: isinstance(value, str) and value != '', 'a name')
_LENGTH = (lambda value: is_number(value) and value > 0, 'a number of pixels')

# Whether a key's value can be used, and what is expected.
_EXPECTED: dict[str, tuple[Callable[[object], bool], str]] = {
    'id': (_is_id, 'a number'),
    'file_name': _NAME,
    'name': _NAME,
    'height': _LENGTH,
    'width': _LENGTH,
    'image_id': (_is_id, 'the id of an image'),
    'category_id': (_is_id, 'the id of a category'),
    'bbox': (lambda box: _are_numbers(box) and len(box) == 4, 'four numbers [x, y, width, height]'),
    'area': (is_number, 'a number of pixels'),
}


def _whole(
    entries: list, kind: str, keys: tuple[str, ...]
) -> tuple[list[dict], list[tuple[str, str]]]:
    """The entries with all needed keys, and what is wrong with the rest."""
    whole, problems = [entry for entry in entries if isinstance(entry, dict)], []
    if len(whole) < len(entries):
        wrong = len(entries) - len(whole)
        problems.append((f'{wrong} of {len(entries)} {not_dicts(kind)}', ''))
    for key in keys:
        fits, expected = _EXPECTED[key]
        wrong = []
        for entry in whole:
            if not fits(entry.get(key)):
                found = repr(entry[key]) if key in entry else 'nothing'
                name = entry.get('file_name') or f'id {entry.get("id")!r}'
                wrong.append(f'{found} in {name}')
        if wrong:
            count = f'{len(wrong)} of {len(entries)} {without_usable(kind, key)}'
            problems.append((f'{count}: {first_few(wrong)}', f'expected {expected} there'))
        whole = [entry for entry in whole if fits(entry.get(key))]
    return whole, problems


def _strangers(
    annotations: list[dict], key: str, known: Iterable[int | str]
) -> Iterator[tuple[str, str]]:
    """Report annotations whose image or category is missing."""
    known = set(known)
    lost = [entry for entry in annotations if entry[key] not in known]
    if not lost:
        return
    values = dict.fromkeys(repr(entry[key]) for entry in lost)
    what = f'{len(lost)} of {len(annotations)} {not_in_file(key)}'
    as_text = {str(value) for value in known}
    used = {entry[key] for entry in annotations}
    if key == 'category_id' and (shift := why_shifted(used, known)):
        advice = shift
    elif all(str(entry[key]) in as_text for entry in lost):
        advice = 'the same ids exist with a different type: write all as numbers, not as text'
    else:
        advice = 'their boxes are lost: add what is missing, or remove them'
    yield f'{what}: {first_few(values)}', advice
