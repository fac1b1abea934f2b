"""COCO's JSON, as written by COCO, Roboflow, Label Studio, CVAT and others."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, first_few
from ptnt_mm.workbench.data.boxes import CORNER_AND_SIZE
from ptnt_mm.workbench.data.coco import (
    JOINED,
    not_dicts,
    not_in_file,
    read_json,
    why_shifted,
    without_usable,
)
from ptnt_mm.workbench.data.labels import (
    LabelledImage,
    LabelledObject,
    Labels,
    as_class_name,
    box_around,
)
from ptnt_mm.workbench.data.masks import box_of, is_absent, turned_box, usable
from ptnt_mm.workbench.data.reading.collector import (
    NO_NUMBERS,
    Collector,
    is_set,
    note_equal_names,
    number,
    whole_number,
)
from ptnt_mm.workbench.data.reading.format import Format
from ptnt_mm.workbench.data.tree import Tree, split_of_all

_KEYS = (b'"images?"', b'"annotations?"', b'"categor(?:ies|y)"')
_LISTS = dict(images='image', annotations='annotation', categories='category')
_NAMES = ('file_name', 'filename', 'coco_url')  # LVIS has addresses
_TURNED, _CORNERS = 5, 8  # numbers of a box that has an angle, or its four corners
_IGNORED = ('iscrowd', 'ignore')
_FEW = 0.05  # share of image ids that may be used twice by mistake
_PANOPTIC = b'"segments_info"'


def _find(tree: Tree) -> str:
    files = tree.first_few(_files(tree), 3)
    return f'{files} with "images", "annotations" and "categories"' if files else ''


def _read(tree: Tree) -> Labels:
    collector = Collector(tree, CORNER_AND_SIZE)
    groups: set[str] = set()
    for file, lists in collector.read(_files(tree), _lists):
        _add(collector, file, *lists)
        for category in filter(lambda entry: isinstance(entry, dict), lists[2]):
            name, group = (as_class_name(str(category.get(k))) for k in ('name', 'supercategory'))
            groups.update({group} - {name})  # a class may be its only group
    labels = collector.finish()
    _drop_groups(labels, groups)
    if others := set(_candidates(tree)) - set(_files(tree)):
        what = 'not read, because other files are named instances'
        labels.notes.append(f'{what}: {tree.first_few(sorted(others))}')
    return labels


def _lists(file: Path) -> list[list]:
    """The images, annotations and categories of a file.

    Raises:
        UserError: if the file cannot be read, or one is missing or is not a list.
    """
    content = read_json(file, as_hosts=False)
    if not isinstance(content, dict):
        raise UserError(f'it is not a dict with {", ".join(_LISTS)}')
    lists = []
    for key, other in _LISTS.items():
        lists.append(content.get(key, content.get(other)))
        if not isinstance(lists[-1], list):
            is_there = key in content or other in content
            raise UserError(f'"{key}" {"is not a list" if is_there else "is missing"}')
    return lists


def _files(tree: Tree) -> list[Path]:
    """The files of objects; if some are named instances, as in COCO, others are ignored."""
    files = _candidates(tree)
    named = [file for file in files if 'instances' in file.name]
    # Those of ptnt infer count for images without others.
    return named + [file for file in files if tree.is_predicted(file)] if named else files


def _candidates(tree: Tree) -> list[Path]:
    return tree.containing('.json', *_KEYS, without=_PANOPTIC)


def _add(collector: Collector, file: Path, images: list, annotations: list, categories: list):
    """Add the content of a file."""
    tree, labels = collector.tree, collector.labels
    names = _names(labels, file, categories)
    _drop_scores(labels, file, annotations)
    split = split_of_all(file) or tree.split_of(file)
    known: dict[str, LabelledImage | None] = {}
    for key, entries in _by_id(labels, file, images).items():
        name = _name(entries[0])
        stated = tuple(whole_number(entries[0].get(side)) for side in ('width', 'height'))
        path = tree.find_image(name, file.parent, split)
        known[key] = collector.image(file, path, split, stated, name)
    found: dict[str, list[dict]] = {}
    for entry in annotations:
        if not isinstance(entry, dict):
            labels.report(file, not_dicts('annotations'), str(entry)[:80])
        elif (key := _key(entry.get('image_id'))) in known:
            found.setdefault(key, []).append(entry)
        else:
            labels.report(file, not_in_file('image_id'), f'id {entry.get("id")}: {key}')
    used = {_number(entry.get('category_id')) for entries in found.values() for entry in entries}
    if shift := why_shifted(used, set(map(_number, names))):
        raise UserError(f'{file}: {shift}')
    for key, entries in found.items():
        if (image := known[key]) is not None:
            collector.add(file, image, _objects(labels, file, image, entries, names))
    _note_losses(labels, file, annotations, names)


def _names(labels: Labels, file: Path, categories: list) -> dict[str, str]:
    """The names of the classes by their ids."""
    names: dict[str, str] = {}
    for category in categories:
        if not isinstance(category, dict) or not str(category.get('name') or '').strip():
            labels.report(file, without_usable('categories', 'name'), str(category)[:80])
            continue
        key, name = _key(category.get('id')), labels.add_class(str(category['name']))
        if names.setdefault(key, name) != name:
            raise UserError(
                f'{file}: the category id {key} is both {names[key]!r} and {name!r}: {JOINED}'
            )
    return names


def _by_id(labels: Labels, file: Path, images: list) -> dict[str, list[dict]]:
    """The images of a file by their ids, without those whose id belongs to a different image, too.

    Raises:
        UserError: if these are many, as after two files were joined.
    """
    by_id: dict[str, list[dict]] = {}
    for entry in images:
        if isinstance(entry, dict) and _name(entry):
            by_id.setdefault(_key(entry.get('id')), []).append(entry)
        else:
            labels.report(file, without_usable('images', 'file_name'), str(entry)[:80])
    names = {key: list(dict.fromkeys(map(_name, entries))) for key, entries in by_id.items()}
    shared = [key for key in names if len(names[key]) > 1]
    listed = [f'{key} is {" and ".join(names[key][:2])}' for key in shared]
    if len(shared) > _FEW * len(by_id):
        raise UserError(
            f'{file}: {len(shared)} of {len(by_id)} image ids belong to several images: '
            f'{first_few(listed, 3)}. Nothing shows which of them an object is in: {JOINED}'
        )
    for key, text in zip(shared, listed, strict=True):
        del by_id[key]
        labels.report(file, 'ids used by several images', text)
    return by_id


def _name(entry: dict) -> str:
    """The name of an image; empty without one."""
    return next((name for key in _NAMES if isinstance(name := entry.get(key), str) and name), '')


def _objects(
    labels: Labels, file: Path, image: LabelledImage, entries: list[dict], names: Mapping
) -> Iterator[LabelledObject]:
    """The objects of an image's annotations that have a class and a box or a mask."""
    for entry in entries:
        label = names.get(_key(entry.get('category_id')))
        if label is None:
            detail = f'{entry.get("category_id")!r} in {image.path.name}'
            label = f'category {entry.get("category_id")}'
            labels.report(file, not_in_file('category_id'), detail, label)
            continue
        mask, box = entry.get('segmentation'), entry.get('bbox')
        mask = None if is_absent(mask) else mask
        # Some programs write zeros, and only the mask is true.
        if isinstance(box, list) and len(box) == 4 and (any(box) or mask is None):
            box = tuple(map(number, box))
        elif points := _corners(box):
            mask, box = mask or [points], box_around(points)
        elif (drawn := usable(mask, image.size)[0]) is not None:
            box = box_of(drawn)
        else:
            has_numbers = isinstance(box, list) and len(box) in (_TURNED, _CORNERS)
            what = NO_NUMBERS if has_numbers else without_usable('annotations', 'bbox')
            labels.report(file, what, f'{label} in {image.path.name}', label)
            continue
        ignored = next((word for word in _IGNORED if is_set(entry.get(word))), '')
        yield LabelledObject(label, box, mask, ignored)


def _drop_scores(labels: Labels, file: Path, annotations: list) -> None:
    """Drop the fifth numbers of boxes if they are scores, and no angles; add a note about either.

    Angles are hardly ever all in [0, 1], and those in degrees hardly ever all below 2 pi.
    """
    boxes = [entry.get('bbox') for entry in annotations if isinstance(entry, dict)]
    boxes = [box for box in boxes if isinstance(box, list) and len(box) == _TURNED and any(box)]
    values = [value for box in boxes if math.isfinite(value := number(box[-1]))]
    beyond = sum(not 0 <= value <= 1 for value in values)
    are_scores = beyond < 2 and 2 * beyond < len(values)
    if are_scores:
        for box in boxes:
            del box[-1]
    unit = 'radians' if all(abs(value) <= 2 * math.pi for value in values) else 'degrees'
    if unit == 'radians' and not are_scores:
        for box in boxes:
            box[-1] = math.degrees(number(box[-1]))
    if boxes:
        angle = f'centre, size and angle in {unit}'
        form = 'corner and size, with a score' if are_scores else angle
        labels.notes.append(f'{file.name}: {counted(len(boxes), "box")} of five numbers: {form}')


def _corners(box: object) -> list[float]:
    """The corners of a box that has an angle, or all four; empty for others."""
    if not isinstance(box, list) or len(box) not in (_TURNED, _CORNERS) or not any(box):
        return []
    points = list(map(number, box))
    if not all(map(math.isfinite, points)):
        return []
    return points if len(box) == _CORNERS else turned_box(*points[:4], math.radians(-points[4]))


def _note_losses(labels: Labels, file: Path, annotations: list, names: Mapping[str, str]) -> None:
    """Add notes about what a file has and a project has not: keypoints, and equal names."""
    entries = [entry for entry in annotations if isinstance(entry, dict)]
    keypoints = [entry.get('keypoints') for entry in entries]
    posed = sum(isinstance(points, list) and any(points) for points in keypoints)
    if posed:
        of_objects = counted(posed, 'object')
        labels.notes.append(f'{file.name}: the keypoints of {of_objects} are not used')
    # Roboflow's first category may have the name of a class, and has no objects.
    used = {_key(entry.get('category_id')) for entry in entries}
    of_used = {key: name for key, name in names.items() if key in used}
    note_equal_names(labels, f'{file.name}: categories', of_used)


def _drop_groups(labels: Labels, groups: set[str]) -> None:
    """Drop Roboflow's first category, which is the name of the project and has no objects."""
    counts = Counter(item.label for image in labels.images for item in image.objects)
    for name in [name for name in labels.classes if name in groups and not counts[name]]:
        if len(labels.classes) > 1:
            labels.classes.remove(name)
            labels.notes.append(f'{name} only groups other categories, so it is not a class')


def _key(value: object) -> str:
    """An id, which tables may have converted to 1.0 or '1'."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _number(value: object) -> int | str:
    """An id as a number, if it is one."""
    key = _key(value)
    return int(key) if key.lstrip('-').isdecimal() else key


FORMAT = Format(
    __name__,
    title='COCO',
    looks_for='JSON files with "images", "annotations" and "categories"',
    tasks=('detection', 'instance', 'semantic'),
    order=10,
    find=_find,
    read=_read,
    note=(
        'Also from Roboflow (`_annotations.coco.json`), Label Studio and CVAT. If there are files '
        'named `instances_...`, only those are read. A category that only groups others is not a '
        'class. Categories of one name become one class, and keypoints are not used. Images may be '
        'named by `coco_url`, as in LVIS. Boxes of five numbers (centre, size and angle, in '
        'degrees or, if all are below 2π, in radians) are [rotated](#rotated-boxes); if the fifth '
        'numbers are in [0, 1], they are scores, and not used.'
    ),
)
