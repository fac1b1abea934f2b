"""Class names: those of a config against the categories of its annotation files."""

from collections import Counter
from collections.abc import Iterator

from ptnt_mm.check.classes import repeated, unlike_the_first, wrong_kind
from ptnt_mm.check.detection.data import DetectionData
from ptnt_mm.utils.findings import Finding, error, sound, warning
from ptnt_mm.utils.text import nearest, some

_SPELLING = 'spell metainfo.classes as the categories: mmdet drops the boxes of all others unsaid'


def check_classes(data: list[DetectionData]) -> Iterator[Finding]:
    """Compare class names with categories, and those of all data sets with each other."""
    for one in data:
        found = [*wrong_kind(one)] or [*repeated(one), *_against_file(one)]
        yield from found or [sound(one.name, f'{len(one.classes)} classes: {some(one.classes)}')]
    if data and are_known(data[0]):
        # Trackers are measured on data sets of another kind, whose classes are their metric's.
        yield from unlike_the_first([data[0], *(one for one in data[1:] if one.lists_objects)])


def are_known(data: DetectionData) -> bool:
    """Whether class names are those that the data set is about, however they are spelt."""
    if any(wrong_kind(data)):
        return False
    if data.stated is not None or data.file is None:
        return True
    return set(data.classes) <= set(data.file.names.values())


def _against_file(data: DetectionData) -> Iterator[Finding]:
    if data.file is None:
        return
    categories = [category['name'] for category in data.file.categories]
    yield from _repeated_categories(data, categories)
    absent = [name for name in data.classes if name not in categories]
    if absent:
        yield _absent(data, absent, categories)
    else:
        yield from _dropped(data)
    asked = [name for name in categories if name in data.classes]
    if not absent and asked != list(data.classes) and len(asked) == len(set(data.classes)):
        yield error(
            data.name,
            f'the categories come as {some(asked)}, metainfo.classes as {some(data.classes)}',
            "labels follow the file's order: write metainfo.classes in it, or predictions get "
            'wrong names',
        )
    yield from _without_objects(data, [name for name in data.classes if name in categories])


def _repeated_categories(data: DetectionData, categories: list[str]) -> Iterator[Finding]:
    counts = Counter(categories)
    repeated = [name for name in data.classes if counts[name] > 1]
    if repeated:
        yield error(
            data.name,
            f'several categories of {data.file.path} have one name: {some(repeated)}',
            'mmdet gives each a label of its own, one more than there are classes: merge them',
        )


def _absent(data: DetectionData, absent: list[str], categories: list[str]) -> Finding:
    """Classes that the file does not have."""
    path = data.file.path
    if data.stated is None:
        return error(
            data.name,
            f"metainfo names no classes, and of the {len(data.classes)} of the data set's class "
            f'{len(absent)} are not in {path}, which has {some(categories)}',
            'write metainfo=dict(classes=(...)) with the names of the file',
        )
    spare = [name for name in categories if name not in data.classes]
    named = [f'{name!r}{nearest(name, spare)}' for name in absent]
    return error(
        data.name, f'metainfo.classes has what is no category of {path}: {some(named)}', _SPELLING
    )


def _dropped(data: DetectionData) -> Iterator[Finding]:
    """Categories with objects that no class asks for."""
    names, labels = data.file.names, data.labels
    counts = Counter(
        names[entry['category_id']]
        for entry in data.file.annotations
        if entry['category_id'] in names and entry['category_id'] not in labels
    )
    if counts:
        which = some(f'{name!r} ({count})' for name, count in counts.items())
        yield warning(
            data.name,
            f'{counts.total()} of {len(data.file.annotations)} objects left out, as their '
            f'categories are no classes: {which}',
            'add them to metainfo.classes, unless you mean to leave them out',
        )


def _without_objects(data: DetectionData, names: list[str]) -> Iterator[Finding]:
    if not data.file.annotations:
        return
    by_id = data.file.names
    seen = {by_id.get(entry['category_id']) for entry in data.file.annotations}
    unseen = [name for name in names if name not in seen]
    if unseen:
        lacks = 'they cannot be learned' if data.trains else 'their precision cannot be measured'
        yield warning(data.name, f'no object of {some(unseen)}', f'{lacks} from this file')
