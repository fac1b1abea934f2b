"""Recognise the format of the labels in a folder, and read them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from ptnt_mm.deploy.decoding import unread_pictures
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, first_few, printable, spellings, unknown_name
from ptnt_mm.workbench.data.copies import thumbnail
from ptnt_mm.workbench.data.formats import FORMAT_NAMES, all_formats, class_masks, numbered_masks
from ptnt_mm.workbench.data.image_files import decoded
from ptnt_mm.workbench.data.labels import TASKS, LabelledImage, Labels, Outcome, counted_classes
from ptnt_mm.workbench.data.many_files import grouped, on_threads
from ptnt_mm.workbench.data.reading.class_tables import read_table
from ptnt_mm.workbench.data.reading.collector import DAMAGED, EMPTY, UNREADABLE
from ptnt_mm.workbench.data.reading.format import Format, Signs
from ptnt_mm.workbench.data.reading.mask_pairs import find_pairs, has_folder_of_masks
from ptnt_mm.workbench.data.tree import Tree
from ptnt_mm.workbench.data.unsupported import UnsupportedFiles, unsupported_labels

CUT_OFF = 'it is truncated, or is not JSON or XML'


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


def require_known(format: str | None, task: str | None) -> None:
    """Raise a UserError if there is no such format or task."""
    if format is not None and format not in FORMAT_NAMES:
        raise UserError(unknown_name('format', format, FORMAT_NAMES))
    if task is not None and task not in TASKS:
        raise UserError(unknown_name('task', task, TASKS))


def recognise(tree: Tree, name: str | None = None, task: str | None = None) -> Recognised:
    """Recognise the format of the labels in a folder.

    Args:
        tree: The folder.
        name: The requested format; None for the first that is found, or another with labels for
            more than twice as many images.
        task: The requested task; formats without labels for it are skipped.

    Raises:
        UserError: if there is no such format or task, or if none is found.
    """
    require_known(name, task)
    forms = [f for f in all_formats() if not tree.pairs or f.signs is Signs.PAIRS]
    asked = [form for form in forms if name in (None, form.name)]
    if not asked:
        fit = ' and '.join(form.name for form in forms)
        raise UserError(f'`pairs` is for the formats {fit}, and not for `format={name}`')
    fit = [form for form in asked if task is None or task in form.tasks]
    if not fit:
        tasks = ', '.join(asked[0].tasks)
        raise UserError(without_labels(task, f'{asked[0].title} is for {tasks}'))
    found: list[tuple[Format, str]] = []
    for form in forms:
        # Comparing the names of many pictures takes long. Beside label files it is done only if a
        # folder has a name for masks. Files with a mask for each object are not class masks.
        is_clear = any(other in fit for other, _ in found)
        of_objects = any(other.signs is Signs.MASKS for other, _ in found)
        is_by_names = form.signs in (Signs.MASKS, Signs.PAIRS)
        if is_clear and is_by_names and (of_objects or not has_folder_of_masks(tree)):
            continue
        if why := form.find(tree):
            found.append((form, why))
    if (name or task) and not any(form in fit for form, _ in found):
        found += [(form, why) for form in reversed(fit) if (why := form.find_any(tree))]
    fitting = [(form, why) for form, why in found if form in fit]
    chosen = _larger(tree, _by_hand(tree, fitting)) if fitting else None
    if chosen is None and task is not None and name is None and found:
        has = '; '.join(f'{form.title} ({why}) for {", ".join(form.tasks)}' for form, why in found)
        message = without_labels(task, f'{tree.root} has only {has}')
        raise UserError('\n'.join([message, *_cut(tree)]))
    if chosen is None:
        raise UserError(_nothing_found(tree, fit, found))
    # Folders of masks are not classes, and folders of images next to label files hardly ever are.
    others = [
        f'{form.title} ({why}: `format={form.name}`)'
        for form, why in found
        if form.signs is not Signs.FOLDERS and form.read is not chosen[0].read
    ]
    are_classes = chosen[0] is class_masks.FORMAT
    table = read_table(tree).file if are_classes else None
    if are_classes and table is None and (why := numbered_masks.why_may_be_numbered(tree)):
        others.append(f'{numbered_masks.FORMAT.title} ({why}: `format=numbered-masks`)')
    if not chosen[0].has_label_files:
        # Pictures of any data set are in folders; labels in files are the clearer sign.
        seen = [item for item in unsupported_labels(tree) if item.format.kind != 'images']
        seen = [item for item in seen if item.files != (table,)]
        if chosen[0].signs is Signs.FOLDERS and name is None and task is None:
            _refuse_folders(tree, chosen[1], seen)
        others += [item.line(tree) for item in seen]
    return Recognised(*chosen, tuple(others))


def _by_hand(tree: Tree, found: Sequence[tuple[Format, str]]) -> Sequence[tuple[Format, str]]:
    """The formats of labels that ``ptnt infer`` did not write; all, if there are no others."""
    if not tree.results:
        return found
    others = tree.without_predictions()
    by_hand = [item for item in found if item[0].has_label_files and item[0].find(others)]
    return by_hand or found


def _larger(tree: Tree, found: Sequence[tuple[Format, str]]) -> tuple[Format, str]:
    """The first format, or the one with labels for more than twice as many images.

    A first format that cannot be read stays the first: its error is the one to correct.
    """
    first = found[0]
    others = [item for item in found if item[0].has_label_files]
    others = [item for item in others if item[0].read is not first[0].read]
    if not others or not first[0].has_label_files:
        return first
    count = _labelled(tree, first[0])
    if not count or 2 * count >= len(tree.images):
        return first
    counts = [_labelled(tree, form) for form, _ in others]
    return others[counts.index(max(counts))] if max(counts) > 2 * count else first


def _labelled(tree: Tree, form: Format) -> int:
    """The number of images with labels in a format; 0 if it cannot be read."""
    try:
        images = form.read(tree).images
    except UserError:
        return 0
    return sum(bool(image.objects or image.label or image.mask) for image in images)


def read_labels(tree: Tree, recognised: Recognised) -> Labels:
    """Read the labels of a folder; report all images without a label, and skip damaged ones.

    Raises:
        UserError: if nothing is usable.
    """
    labels = recognised.format.read(tree)
    skip_damaged(labels)
    mentioned = {image.path for image in labels.images} | labels.aside
    mentioned |= {problem.file for problem in labels.problems}
    for path in tree.cut_off():
        if path not in mentioned:
            labels.report(path, UNREADABLE, _why_cut_off(path))
    for path in tree.images:
        if path not in mentioned:
            copied = tree.copies.get(path)
            kind = 'copies of images' if copied else 'images that no label refers to'
            labels.report(path, kind, f'equal to {tree.relative(copied)}' if copied else '')
    labels.notes += unread_pictures(tree.files)
    if tree.results:
        files = tree.first_few(tree.results)
        labels.notes.append(f'results of ptnt infer, which are not read: {files}')
        folders = sorted(tree.predicted)
        if written := [folder for folder in folders if _has(recognised.format, folder)]:
            named = tree.first_few(written)
            labels.notes.append(f'labels that ptnt infer wrote are used, so correct them: {named}')
    _report_spellings(labels)
    if not any(image.objects or image.label or image.mask for image in labels.images):
        listed = '\n'.join(f'    {line}' for line in summary(labels))
        raise UserError(
            f'{tree.root} was recognised as {recognised.format.title} ({recognised.why}), but '
            f'none of it can be used:\n{listed or "    no objects"}\n--format chooses another '
            'format'
        )
    return labels


def _has(form: Format, folder: Path) -> bool:
    """Whether a folder has files of a format."""
    return folder.is_dir() and any(folder.rglob('*.*')) and bool(form.find(Tree(folder)))


def without_labels(task: str, has: str) -> str:
    """Message about a requested task that has no labels; ``has`` says what there is instead."""
    holding = ', '.join(form.name for form in all_formats() if task in form.tasks)
    return (
        f'`task={task}` needs {TASKS[task]}, but {has}. Leave out `task`, or add {TASKS[task]} in '
        f'one of these formats: {holding}. docs/formats.md shows each layout'
    )


def summary(labels: Labels) -> list[str]:
    """One line for each kind of problem: its number, what became of them, and the first."""
    lines = []
    for title, problems in grouped((p.title, p) for p in labels.problems).items():
        first = problems[0]
        classes = counted_classes(problem.label for problem in problems if problem.label)
        line = f'{title}{f" ({classes})" if classes else ""}: {printable(first.file.name)}'
        if first.detail:
            line += f' ({printable(first.detail)})'
        if len(problems) > 1:
            line = f'{len(problems):,} {line} and {len(problems) - 1:,} more'
        lines.append(line)
    return lines


def skip_damaged(labels: Labels) -> None:
    """Report and skip images whose pixels cannot be decoded, at which an evaluation would stop."""

    def why_damaged(image: LabelledImage) -> str:
        def keep(pixels: Image.Image) -> None:
            labels.thumbnails[image.path] = thumbnail(pixels)

        return decoded(image.path, keep)[0]

    found = on_threads(why_damaged, labels.images, 'Decoding images')
    images, labels.images = labels.images, []
    for image, why in zip(images, found, strict=True):
        if why:
            labels.report(image.path, DAMAGED, why)
        else:
            labels.images.append(image)


def _report_spellings(labels: Labels) -> None:
    """Report the images with a class that has another name in most images, such as rbc and RBC."""
    used = {image.path: [item.label for item in image.objects] for image in labels.images}
    used |= {image.path: [image.label] for image in labels.images if image.label}
    counts = Counter(name for names in used.values() for name in set(names))
    what = 'class names that differ only in capitals or separators'
    for names in spellings(labels.classes):
        usual = max(names, key=counts.__getitem__)
        others = [name for name in names if name != usual]
        rare = [(path, name) for path, own in used.items() for name in others if name in own]
        for path, name in rare:
            detail = f'{name!r} here, {usual!r} in most images'
            labels.report(path, what, detail, name, Outcome.KEPT)
        if not rare:  # of masks, the classes of an image are unknown here
            labels.notes.append(f'{what}: {first_few(map(repr, names))}')


def _refuse_folders(tree: Tree, why: str, seen: list[UnsupportedFiles]) -> None:
    """Refuse to read folders as classes if files contain labels; tables may accompany folders."""
    lines = [f'\n    {item.line(tree)}' for item in seen if item.format.kind != 'table']
    if lines:
        raise UserError(
            f'{tree.root} has labels in a format that is not read:{"".join(lines)}\n--format '
            f'folders ignores them, and reads {why} as classes'
        )


def _nothing_found(tree: Tree, fit: list[Format], found: list[tuple[Format, str]]) -> str:
    """What the formats that fit would look like, and what there is instead."""
    seen, pairs = unsupported_labels(tree), find_pairs(tree)
    remarks = [*_cut(tree), *unread_pictures(tree.files)]
    are_masks = bool(pairs.every or pairs.unused)
    if not (tree.pairs or found or seen or are_masks) and _has_only_images(tree):
        images = counted(len(tree.images), 'image')
        advice = (
            'To train on them, put each into a folder with the name of its class, or draw boxes or '
            'masks with a tool such as LabelMe, Label Studio or CVAT (docs/formats.md). ptnt '
            'pretrain trains a backbone on images without labels'
        )
        return '\n'.join((f'{tree.root} has {images} and no labels. {advice}', *remarks))
    lines = [
        f'{tree.root} contains no labels in a supported format. Files: '
        f'{tree.overview()}. Supported:',
        *(f'    {form.name:<14}  {form.looks_for}' for form in fit),
    ]
    if found:
        lines.append('Found instead:')
        lines += [f'    {f.name:<14}  {why}, for {", ".join(f.tasks)}' for f, why in found]
    if seen:
        lines += ['Found, but not supported:', *(f'    {item.line(tree)}' for item in seen)]
    if pairs.unused:
        number, first = len(pairs.unused), tree.relative(pairs.unused[0])
        lines.append(f'Named like masks, but without an image: {number:,}, such as {first}')
    return '\n'.join((*lines, *remarks, 'docs/formats.md shows each layout'))


def _has_only_images(tree: Tree) -> bool:
    """Whether a folder has images, and beside them only pictures that are not read, or readmes."""
    others = [file for file in tree.files if file.suffix.lower() not in _FOR_PEOPLE]
    unread = sum(bool(unread_pictures([file])) for file in others)
    return bool(tree.images) and len(tree.images) + unread == len(others)


_FOR_PEOPLE = ('', '.db', '.ini', '.html', '.md', '.pdf')


def _cut(tree: Tree) -> list[str]:
    return [f'{file}: {_why_cut_off(file)}' for file in tree.cut_off()[:5]]


def _why_cut_off(file: Path) -> str:
    # A broken link is not a file.
    return EMPTY if file.is_file() and not file.stat().st_size else CUT_OFF
