"""Recognise the format of the labels in a folder, and read them."""

from dataclasses import dataclass
from pathlib import Path

from ptnt_mm.data.image_files import decoded
from ptnt_mm.labels.formats import (
    class_folders,
    class_masks,
    coco,
    cvat,
    labelme,
    numbered_masks,
    object_masks,
    voc,
    yolo,
)
from ptnt_mm.labels.formats.format import DAMAGED, EMPTY, UNREADABLE, Format
from ptnt_mm.labels.model import TASKS, Labels, Problem
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.many_files import on_threads
from ptnt_mm.utils.text import first_few, printable, unknown_name

FORMATS = tuple(
    module.FORMAT
    for module in (
        coco,
        voc,
        yolo,
        cvat,
        labelme,
        object_masks,
        numbered_masks,
        class_masks,
        class_folders,
    )
)
"""Formats with the clearest signs first; class folders match when nothing else does."""

_IF_ASKED = {numbered_masks.FORMAT.name: numbered_masks.find_any}
"""Searches with fewer signs, for a format or a task that is asked for."""

CUT_OFF = 'it is truncated, or is not JSON or XML'

FORMAT_NAMES = tuple(format.name for format in FORMATS)


@dataclass(frozen=True)
class Recognised:
    """The format of a folder.

    Attributes:
        format: The format that was chosen.
        why: How it was recognised.
        others: Other formats that were found, a line each.
    """

    format: Format
    why: str
    others: tuple[str, ...] = ()


def recognise(tree: Tree, name: str | None = None, task: str | None = None) -> Recognised:
    """Recognise the format of the labels in a folder.

    Args:
        tree: The folder.
        name: The requested format; None for the first that is found.
        task: The requested task; formats without labels for it are skipped.

    Raises:
        UserError: if there is no such format or task, or if none is found.
    """
    if name is not None and name not in FORMAT_NAMES:
        raise UserError(unknown_name('format', name, FORMAT_NAMES))
    if task is not None and task not in TASKS:
        raise UserError(unknown_name('task', task, TASKS))
    asked = [form for form in FORMATS if name in (None, form.name)]
    fit = [form for form in asked if task is None or task in form.tasks]
    if not fit:
        tasks = ', '.join(asked[0].tasks)
        raise UserError(without_labels(task, f'{asked[0].title} is for {tasks}'))
    found = [(form, why) for form in FORMATS if (why := form.find(tree))]
    if (name or task) and not any(form in fit for form, _ in found):
        asked_for = [(form, _IF_ASKED[form.name](tree)) for form in fit if form.name in _IF_ASKED]
        found += [(form, why) for form, why in asked_for if why]
    chosen = next(((form, why) for form, why in found if form in fit), None)
    if chosen is None and task is not None and name is None and found:
        has = '; '.join(f'{form.title} ({why}) for {", ".join(form.tasks)}' for form, why in found)
        raise UserError(f'{without_labels(task, f"{tree.root} has only {has}")}{_cut(tree)}')
    if chosen is None:
        looked = '\n'.join(f'    {form.name:<14} {form.looks_for}' for form in fit)
        raise UserError(
            f'{tree.root} contains no labels in a supported format. It has {tree.overview()}. '
            f'Looked for:\n{looked}{_instead(found)}{_cut(tree)}\ndocs/data.md shows each layout'
        )
    others = tuple(f'{form.title} ({why})' for form, why in found if form is not chosen[0])
    return Recognised(*chosen, others)


def read_labels(tree: Tree, recognised: Recognised) -> Labels:
    """Read the labels of a folder; report all images without a label, and skip damaged ones.

    Raises:
        UserError: if nothing is usable.
    """
    labels = recognised.format.read(tree)
    _skip_damaged(labels)
    spoken_of = {image.path for image in labels.images} | labels.aside
    spoken_of |= {problem.file for problem in labels.problems}
    for path in tree.cut_off():
        if path not in spoken_of:
            labels.report(path, UNREADABLE, _why_cut_off(path))
    for path in tree.images:
        if path not in spoken_of:
            labels.report(path, 'images that no label refers to')
    if tree.results:
        files = first_few(str(tree.relative(file)) for file in tree.results)
        labels.notes.append(f'results of ptnt infer, which are not read: {files}')
    for names in _alike(labels.classes):
        labels.notes.append(f'classes that differ only in capitals: {", ".join(names)}')
    if not any(image.objects or image.label or image.mask for image in labels.images):
        listed = '\n'.join(f'    {line}' for line in summary(labels))
        raise UserError(
            f'{tree.root} was recognised as {recognised.format.title} ({recognised.why}), but '
            f'nothing in it can be used:\n{listed or "    no objects"}\n--format chooses another '
            'format'
        )
    return labels


def without_labels(task: str, has: str) -> str:
    """Message about a requested task that has no labels; ``has`` says what there is instead."""
    holding = ', '.join(form.name for form in FORMATS if task in form.tasks)
    return (
        f'--task {task} needs {TASKS[task]}, but {has}. Leave out --task, or add {TASKS[task]} in '
        f'one of these formats: {holding}. docs/data.md shows each layout'
    )


def summary(labels: Labels) -> list[str]:
    """One line for each kind of problem: how many, if several, and the first with its file."""
    kinds: dict[str, list[Problem]] = {}
    for problem in labels.problems:
        kinds.setdefault(problem.kind, []).append(problem)
    lines = []
    for kind, (first, *others) in kinds.items():
        line = f'{kind}: {printable(first.file.name)}'
        if first.detail:
            line += f' ({printable(first.detail)})'
        if others:
            line = f'{len(others) + 1:,} {line} and {len(others):,} more'
        lines.append(line)
    return lines


def _skip_damaged(labels: Labels) -> None:
    """Skip images whose pixels cannot be decoded, at which an evaluation would stop."""
    paths = [image.path for image in labels.images]
    faults = dict(zip(paths, on_threads(decoded, paths, 'Decoding images'), strict=True))
    for path, (fault, *_) in faults.items():
        if fault:
            labels.report(path, DAMAGED, fault)
    labels.images = [image for image in labels.images if not faults[image.path][0]]


def _alike(classes: list[str]) -> list[list[str]]:
    """Class names that are equal but for capitals."""
    groups: dict[str, list[str]] = {}
    for name in classes:
        groups.setdefault(name.casefold(), []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def _cut(tree: Tree) -> str:
    return ''.join(f'\n{file}: {_why_cut_off(file)}' for file in tree.cut_off()[:5])


def _why_cut_off(file: Path) -> str:
    # A broken link is no file.
    return EMPTY if file.is_file() and not file.stat().st_size else CUT_OFF


def _instead(found: list[tuple[Format, str]]) -> str:
    seen = ''.join(
        f'\n    {form.name:<14} {why}, for {", ".join(form.tasks)}' for form, why in found
    )
    return f'\nFound instead:{seen}' if found else ''
