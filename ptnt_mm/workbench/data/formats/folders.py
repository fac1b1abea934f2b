"""A folder of images for each class, with or without folders of splits around or inside them.

A clone has other pictures, too. The classes are the folders that hold images and are siblings; what
is elsewhere is left out, and said.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, first_few, nfc
from ptnt_mm.workbench.data.labels import Labels
from ptnt_mm.workbench.data.many_files import grouped
from ptnt_mm.workbench.data.reading.collector import Collector
from ptnt_mm.workbench.data.reading.format import Format, Signs
from ptnt_mm.workbench.data.reading.mask_pairs import option_for, which_is_flat
from ptnt_mm.workbench.data.tree import Tree, split_in, split_named

Folder = tuple[str, ...]
Placed = Mapping[Path, tuple[str | None, Folder]]

_NO_CLASSES = re.compile(
    'images?|imgs?|jpegimages|pictures|photos|data|masks?|labels?|annotations'
    '|segmentation(class|object)'
)
_OF_A_CLONE = re.compile(
    'assets|demo|docs?|examples?|figs|figures|media|outputs|results|runs|samples?|screenshots|static'
)
_OF_A_PART = re.compile(r'\d|\b\w\b')  # of a class: 2024-01-05, camera 1, camera A
_FEW = 0.1  # of the images of a usual class


@dataclass(frozen=True)
class _Level:
    """The class of each folder, given without those of splits; notes on how they were chosen."""

    classes: Mapping[Folder, str]
    notes: tuple[str, ...] = ()

    def class_of(self, folder: Folder) -> str | None:
        """The class of images in a folder, or in one above it."""
        return next(filter(None, map(self.classes.get, reversed(_with_above(folder)))), None)


def _with_above(folder: Folder) -> list[Folder]:
    """A folder and those above it, from the top."""
    return [folder[: end + 1] for end in range(len(folder))]


class _Folders:
    """Folders with the number of images directly in each, as a tree."""

    def __init__(self, counts: Mapping[Folder, int]):
        self.counts = counts
        self.children: dict[Folder, set[Folder]] = defaultdict(set)
        for folder in counts:
            for inside in _with_above(folder):
                self.children[inside[:-1]].add(inside)

    def below(self, folder: Folder) -> int:
        """The number of images in a folder and in those inside it."""
        inside = sum(self.below(child) for child in self.children.get(folder, ()))
        return self.counts.get(folder, 0) + inside

    def is_class(self, folder: Folder) -> bool:
        """Whether a folder holds images itself, or in a single folder such as cat/images."""
        direct, inside = self.counts.get(folder, 0), self.children.get(folder, set())
        if direct:
            # A folder of folders may hold a stray picture.
            return len(inside) < 2 or direct > self.below(folder) / 2
        has_siblings = len(self.children[folder[:-1]]) > 1
        return has_siblings and len(inside) == 1 and self.is_class(next(iter(inside)))

    @cached_property
    def groups(self) -> dict[Folder, list[Folder]]:
        """Folders that are classes among two or more siblings, by the folder around them."""
        found = {}
        to_visit: list[Folder] = [()]
        while to_visit:
            parent = to_visit.pop()
            classes = sorted(child for child in self.children[parent] if self.is_class(child))
            to_visit += self.children[parent] - set(classes)
            if len(classes) > 1:
                found[parent] = classes
        return found


def _find(tree: Tree) -> str:
    placed = _placed(tree)
    try:
        level = _level(tree, placed)
    except UserError:
        return 'folders of images at several levels'
    names = set(level.classes.values())
    if len(names) < 2:
        return ''
    used = (split for split, folder in placed.values() if level.class_of(folder))
    splits = sorted(set(filter(None, used)))
    inside = f' inside {", ".join(splits)}' if splits else ''
    return f'images in {len(names)} folders{inside}'


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    placed = _placed(tree)
    level = _level(tree, placed)
    left_out = Counter()
    for path, (split, folder) in placed.items():
        name = level.class_of(folder)
        if name is None:
            collector.labels.report(path, 'images outside the class folders')
            left_out['/'.join(tree.folders(path))] += 1
            continue
        image = collector.image(path, path, split)
        if image is not None:
            collector.set(replace(image, label=name, split=split))
    labels = collector.finish()
    labels.classes = sorted({image.label for image in labels.images})
    labels.notes += [*level.notes, *_note_flat(tree, labels)]
    if aside := [f'{name} ({count})' for name, count in left_out.most_common() if name]:
        labels.notes.append(
            f'images left out, because their folders are not classes: {first_few(aside)}'
        )
    return labels


def _note_flat(tree: Tree, labels: Labels) -> list[str]:
    """A note if one of two classes has as many pictures as the other, and looks like its masks."""
    groups = [[i.path for i in labels.images if i.label == name] for name in labels.classes]
    are_two = len(groups) == 2 and len(groups[0]) == len(groups[1])
    if not are_two or (flat := which_is_flat(groups)) is None:
        return []
    option = option_for(tree, groups[1 - flat][0], groups[flat][0], len(groups[flat]))
    return [
        f'warning: the images of {labels.classes[flat]} have only a few colours, as masks do: if '
        f'they are the masks of the others, {option} gives their names'
    ]


def _placed(tree: Tree) -> Placed:
    """The split of each image, and its folders without those of splits."""
    splits = _split_folders({tree.folders(image) for image in tree.images})
    placed = {}
    for image in tree.images:
        folders = tree.folders(image)
        of_path = [splits.get(folder) for folder in _with_above(folders)]
        kept = (nfc(name) for name, split in zip(folders, of_path, strict=True) if not split)
        placed[image] = next(filter(None, of_path), None), tuple(kept)
    return placed


def _split_folders(leaves: Iterable[Folder]) -> dict[Folder, str]:
    """The folders of splits: 'valid', and 'seg_train' if there is a 'seg_test'."""
    leaves = set(leaves)
    folders = {folder for leaf in leaves for folder in _with_above(leaf)}
    siblings = grouped((folder[:-1], folder) for folder in sorted(folders))
    found: dict[Folder, str] = {}
    words: dict[str, str] = {}
    for group in siblings.values():
        named = {folder: split for folder in group if (split := split_named(folder[-1]))}
        others = [folder for folder in group if folder not in named and folder in leaves]
        if len(named) == 1 and len(others) > 1 and set(named) <= leaves:
            continue  # a class of trains, beside cars and ships
        found |= named
        by_rest: dict[str, dict[Folder, str]] = defaultdict(dict)
        for folder in group:
            if folder not in named and (split := split_in(folder[-1])):
                parts = re.split(r'[_\-. ]+', folder[-1])
                rest = '_'.join(part for part in parts if split_named(part) != split)
                by_rest[rest.casefold()][folder] = split
        for several in by_rest.values():
            if len(set(several.values())) > 1:
                words |= {folder[-1]: split for folder, split in several.items()}
    # Archives repeat a folder inside itself: seg_train/seg_train.
    return found | {folder: words[folder[-1]] for folder in folders if folder[-1] in words}


def _level(tree: Tree, placed: Placed) -> _Level:
    """Choose the folders that are classes.

    Raises:
        UserError: if folders at several levels may be.
    """
    in_splits = [path for path, (split, folder) in placed.items() if split and folder]
    everywhere = [path for path, (_, folder) in placed.items() if folder]
    # Beside train/cat and val/cat, other folders are not classes.
    used = in_splits if len(in_splits) * 2 > len(everywhere) else everywhere
    folders = _Folders(Counter(placed[path][1] for path in used))
    groups, notes = _without_copies(tree, placed, folders)
    suffixes = grouped(
        (folder, path.suffix.lower()) for path in used for folder in _with_above(placed[path][1])
    )
    groups = {parent: _classes_of(folders, group, suffixes) for parent, group in groups.items()}
    all_groups = {parent: group for parent, group in groups.items() if group}
    groups = _largest(folders, all_groups)
    if _is_rare_class_left(all_groups, groups):
        raise _ambiguous(tree, all_groups)
    if any(_NO_CLASSES.fullmatch(f[-1].casefold()) for group in groups.values() for f in group):
        return _Level({})
    level = _named(tree, groups, used is in_splits)
    if level.classes and sum(map(folders.below, level.classes)) * 2 < len(used):
        raise _ambiguous(tree, folders.groups)
    beside = _beside(folders, level)
    if sum(map(folders.below, beside)) * 3 > len(used):
        raise _ambiguous(tree, {beside[0][:-1]: beside, **folders.groups})
    return replace(level, notes=(*notes, *level.notes))


def _beside(folders: _Folders, level: _Level) -> list[Folder]:
    """Folders of images beside the folder around the classes: cat, beside dog/001 and dog/002."""
    around = {folder[:-1] for folder in level.classes} - {()}
    siblings = set().union(*(folders.children[parent[:-1]] for parent in around)) - around
    return sorted(f for f in siblings if folders.is_class(f) and not _is_of_a_clone(f[-1:]))


def _without_copies(
    tree: Tree, placed: Placed, folders: _Folders
) -> tuple[dict[Folder, list[Folder]], list[str]]:
    """The groups of siblings without those that repeat another, as archives do; and notes."""
    parent_of = {folder: parent for parent, group in folders.groups.items() for folder in group}
    contents: dict[Folder, set[tuple]] = defaultdict(set)
    for path, (split, folder) in placed.items():
        if parents := [parent_of[f] for f in _with_above(folder) if f in parent_of]:
            contents[parents[0]].add((*folder[len(parents[0]) :], split, path.name))
    kept: dict[Folder, list[Folder]] = {}
    notes = []
    for parent in sorted(folders.groups, key=len):
        group = folders.groups[parent]
        # Of the same depth, they may be the same pictures in colour and in grey.
        alike = (p for p in kept if len(p) < len(parent) and len(kept[p]) == len(group))
        first = next((p for p in alike if _mostly(contents[p], contents[parent])), None)
        if first is None:
            kept[parent] = group
        else:
            name = '/'.join(first) or tree.root.name
            notes.append(f'{"/".join(parent)} repeats the images of {name}: not read')
    return kept, notes


def _mostly(content: set, other: set) -> bool:
    return len(content & other) > 0.9 * max(len(content), len(other))


def _classes_of(
    folders: _Folders, group: list[Folder], suffixes: Mapping[Folder, list[str]]
) -> list[Folder]:
    """The siblings without those that look like a part of a clone; none if only one remains."""
    usual = median(map(folders.below, group))
    common = Counter(suffix for folder in group for suffix in set(suffixes[folder]))

    def is_class(folder: Folder) -> bool:
        if _is_of_a_clone(folder[-1:]):
            return False
        is_odd = not any(common[suffix] > 1 for suffix in suffixes[folder])
        return not (is_odd and folders.below(folder) < _FEW * usual)

    classes = list(filter(is_class, group))
    return classes if len(classes) > 1 else []


def _largest(
    folders: _Folders, groups: Mapping[Folder, list[Folder]]
) -> dict[Folder, list[Folder]]:
    """The groups without those of a different depth, or with few images, beside a large one."""
    outside = {p: group for p, group in groups.items() if not _is_of_a_clone(p)}
    groups = outside or groups
    if len(groups) < 2:
        return dict(groups)
    images = {parent: sum(map(folders.below, group)) for parent, group in groups.items()}
    main = max(images, key=lambda parent: images[parent])
    usual = images[main] / len(groups[main])
    return {
        parent: group
        for parent, group in groups.items()
        if (len(parent) == len(main) and images[parent] / len(group) >= _FEW * usual)
        or images[parent] > images[main] / 2
    }


def _is_rare_class_left(groups: Mapping[Folder, list], kept: Mapping[Folder, list]) -> bool:
    """Whether defect/camera 1 is left out beside OK/camera 1, which has many images."""
    depths = {len(parent) for parent in kept}
    parts = {f[-1] for group in kept.values() for f in group if _OF_A_PART.search(f[-1])}
    left = (p for p in groups.keys() - kept.keys() if len(p) in depths and not _is_of_a_clone(p))
    return any(folder[-1] in parts for parent in left for folder in groups[parent])


def _is_of_a_clone(folder: Folder) -> bool:
    return any(_OF_A_CLONE.fullmatch(name.casefold()) for name in folder)


def _named(tree: Tree, groups: Mapping[Folder, list[Folder]], in_splits: bool) -> _Level:
    """The names of the classes in one or more groups of siblings, perhaps inside of splits.

    Raises:
        UserError: if the names do not show which of two levels are classes.
    """
    names = {parent: {folder[-1] for folder in group} for parent, group in groups.items()}
    together = set().union(*names.values())
    classes = {folder: folder[-1] for group in groups.values() for folder in group}
    if len(groups) < 2:
        return _Level(classes)
    if len({len(parent) for parent in groups}) > 1:
        raise _ambiguous(tree, groups)
    parents = {parent: parent[-1] for parent in sorted(groups)}
    outer, inner = first_few(parents.values()), first_few(sorted(together))
    is_same = all(len(of_parent) * 3 > len(together) * 2 for of_parent in names.values())
    if is_same and _is_numbered(parents.values()) and not _is_numbered(together):
        return _Level(classes, (f'{outer} contain the same classes, {inner}: joined',))
    # Ten digits in two folders may be ten classes; 40X and 100X, or 17 and 18, are parts of one.
    if _is_numbered(together, with_a_word=is_same) and not _is_numbered(parents.values(), False):
        return _Level(parents, (f'{inner} are parts of the classes, {outer}: joined',))
    if is_same and in_splits and all(len(parent) == 1 for parent in parents):
        return _Level(parents, (f'classes are the folders of the splits, {outer}, with {inner}',))
    if is_same:
        raise _ambiguous(tree, groups)
    if len(classes) == len(together):
        return _Level(classes, (f'classes are the folders inside {outer}',))
    if _is_numbered(parents.values(), with_a_word=False):  # days, one of which lacks a class
        raise _ambiguous(tree, groups)
    note = 'several folders have classes of the same name: the names contain both folders'
    return _Level({folder: '/'.join(folder[-2:]) for folder in classes}, (note,))


def _is_numbered(names: Iterable[str], with_a_word: bool = True) -> bool:
    """Whether names differ only in numbers, and have a word beside them, as session1 has."""
    rests = {re.sub(r'\d+', '', name).casefold() for name in names}
    return len(rests) == 1 and (not with_a_word or bool(next(iter(rests)).strip('_-. ')))


def _ambiguous(tree: Tree, groups: Mapping[Folder, list[Folder]]) -> UserError:
    lines = ''.join(
        f'\n    {"/".join(parent) or "."}: {first_few(folder[-1] for folder in group)}'
        for parent, group in sorted(groups.items())[:5]
    )
    more = f'\n    and {counted(len(groups) - 5, "folder")} more' if len(groups) > 5 else ''
    return UserError(
        f'{tree.root} has folders of images at several levels, which do not show what the classes '
        f'are:{lines}{more}\npass one of them, or move all images into DATA/CLASS/ or '
        'DATA/train/CLASS/'
    )


FORMAT = Format(
    __name__,
    title='Class folders',
    looks_for='a folder of images for each class, two or more, perhaps inside train and val',
    tasks=('classification',),
    order=300,
    find=_find,
    read=_read,
    signs=Signs.FOLDERS,
    note=(
        'The classes are the folders that hold images and are siblings, such as `Dataset/0` to '
        '`Dataset/9`. Splits may be above or below them. Folders that could be read in two ways '
        'are refused.'
    ),
)
