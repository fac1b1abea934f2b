"""The content of a page about data: what the network sees, problems, copies, classes and sizes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from ptnt_mm.deploy.decoding import Range, read_rgb
from ptnt_mm.utils.colours import as_hex, palette_of
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Severity, of_kind
from ptnt_mm.utils.frames import one_line
from ptnt_mm.utils.text import counted, first_few
from ptnt_mm.version import __version__
from ptnt_mm.workbench.check import inspection
from ptnt_mm.workbench.check.class_names import findings_of_names
from ptnt_mm.workbench.check.network import strides_of_parts
from ptnt_mm.workbench.check.trial.setup import undisturbed
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.view import SPLITS, ConfigView
from ptnt_mm.workbench.data.many_files import on_threads
from ptnt_mm.workbench.data.tree import Tree
from ptnt_mm.workbench.engine.load_in_range import stated_range
from ptnt_mm.workbench.pages.data.network_input import NetworkInput, network_inputs
from ptnt_mm.workbench.pages.data.problems import ProblemsOfImage, group_problems
from ptnt_mm.workbench.pages.data.splits import Copy, Data, read_data
from ptnt_mm.workbench.pages.page import photograph
from ptnt_mm.workbench.project.create import PROBLEMS

_INPUTS = 20  # images as the network gets them
_PAIRS = 24  # of copies, with pictures
_PROBLEM_PICTURES = 48
_PROBLEM_LINES = 3_000  # on the page
_SMALL_SIDE = 320  # pixels of the longer side of pictures of copies and problems
_SIZES = 12  # of images, that are all listed
_FEW = 10  # objects of a class: fewer are pointed out


@dataclass(frozen=True)
class Bar:
    """A row of a table with a bar: a label, a number, and whether it is worth a look."""

    label: str
    number: int
    share: float
    is_low: bool = False
    note: str = ''


@dataclass(frozen=True)
class ClassRow:
    """A class: how often it occurs in each split, and how large it is."""

    name: str
    colour: str
    counts: Sequence[int]
    sides: Sequence[float]  # of its training objects, in pixels as trained
    pixels: Sequence[float] = ()  # share of each split

    def side(self, quantile: float) -> float:
        """A quantile of the sides in pixels; NaN without objects."""
        return float(np.quantile(self.sides, quantile)) if len(self.sides) else float('nan')

    def below(self, stride: float) -> int:
        """The number of objects with a smaller side."""
        return sum(side < stride for side in self.sides)


@dataclass
class Network:
    """The input of a model."""

    inputs: list[NetworkInput] = field(default_factory=list)  # training images as it gets them
    stride: float | None = None  # the finest of its maps, in pixels; None if unknown
    notes: list[str] = field(default_factory=list)  # why something is missing


def data_content(view: ConfigView, folder: Path) -> dict[str, Any]:
    """Return the variables of the template ``data.html``.

    Args:
        view: The config.
        folder: The folder of its project, which may have a ``problems.txt``.
    """
    data, network, remarks = Data(), Network(), []
    try:
        import_host(view.scope)
        data = read_data(view, _INPUTS)
        network = _network(view, data)
        remarks = _about_class_names(view, data)
    except UserError as error:
        data.notes.append(str(error))
    metainfo = view.train.metainfo if view.train.data_sets else {}
    colours = list(map(as_hex, palette_of(metainfo, len(data.classes))))
    classes = list(_classes(data, colours))
    sides = np.concatenate([row.sides for row in classes]) if classes else np.zeros(0)
    problems = _problems(folder, view.config.get('images'), data)
    value_range = stated_range(view.test)
    return dict(
        made=f'{datetime.now():%Y-%m-%d %H:%M} by ptnt_mm {__version__}',
        data=data,
        network=network,
        facts=list(_facts(data, network)),
        remarks=[*remarks, *_remarks(data, network, classes, sides, problems)],
        legend=dict(zip(data.classes, colours, strict=False)),
        classes=classes,
        largest=max((max(row.counts) for row in classes), default=0),
        sides=list(_side_bars(sides, network.stride)),
        sizes=list(_size_bars(data)),
        pairs=list(_pairs(data.copies[:_PAIRS], value_range)),
        problems=_with_pictures(problems, value_range),
        lines=sum(len(group.lines) for group in problems),
        most_lines=_PROBLEM_LINES,
    )


def _network(view: ConfigView, data: Data) -> Network:
    network = Network()
    try:
        with undisturbed(view.scope):  # weights are drawn
            model = build_model(view.config)
        strides = [min(found) for *_, found in strides_of_parts(model) if found]
        network.stride = min(strides, default=None)
        preprocessor = model.data_preprocessor
        found = network_inputs(view, data.sets, preprocessor, data.classes, _INPUTS)
        network.inputs.extend(found)
    except Exception as error:  # models and pipelines may raise anything
        network.notes.append(one_line(error))
    return network


def _facts(data: Data, network: Network) -> Iterator[tuple[str, str]]:
    """Names and values for the top of the page."""
    for split, images in data.splits.items():
        what = 'tiles' if data.tile is not None and split == 'train' else 'images'
        yield f'{what} in {split}', f'{len(images):,}'
    if data.tile is not None:
        yield 'side of a tile', f'{data.tile:,} px'
    if data.classes:
        yield 'classes', f'{len(data.classes):,}'
    train = data.splits.get('train', ())
    if data.kind == 'object' and train:
        yield 'training objects', f'{sum(len(image.labels) for image in train):,}'
    sizes = [image.size for image in train if image.size]
    if sizes and data.trained:
        yield 'trained at', _pixels(np.median([data.trained[size] for size in sizes], axis=0))
    if network.stride:
        yield 'finest stride', f'{network.stride:g} px'


def _remarks(
    data: Data,
    network: Network,
    classes: Sequence[ClassRow],
    sides: np.ndarray,
    problems: Sequence[ProblemsOfImage],
) -> Iterator[tuple[str, str]]:
    """Remarks for the top of the page, each with the section that shows more."""
    for note in data.notes:
        yield f'Not shown: {note}', ''
    for note in network.notes:
        which = 'Some' if network.inputs else 'The'
        yield f'{which} training images are not shown as the network sees them: {note}', 'inputs'
    if lines := sum(len(group.lines) for group in problems):
        yield (
            f'{counted(lines, "problem")} in labels or images: see below what was done about each',
            'problems',
        )
    if data.copies:
        pairs = Counter(copy.splits for copy in data.copies)
        listed = ', '.join(f'{n} of {second} in {first}' for (first, second), n in pairs.items())
        yield f'Images that are in two splits: {listed}. Scores will be too good', 'copies'
    for place, split in enumerate(data.splits):
        if absent := [row.name for row in classes if not row.counts[place]]:
            of = counted(len(classes), 'class')
            yield f'{split} lacks {len(absent)} of {of}: {first_few(absent)}', 'classes'
    if 'train' in data.splits:
        place = list(data.splits).index('train')
        if rare := [row.name for row in classes if 0 < row.counts[place] < _FEW]:
            what = 'objects' if data.kind == 'object' else 'images'
            subject = counted(len(rare), 'class')
            yield f'{subject} with fewer than {_FEW} training {what}: {first_few(rare)}', 'classes'
    if network.stride and (below := int((sides < network.stride).sum())):
        what = counted(len(sides), 'training region' if data.kind == 'mask' else 'training object')
        yield (
            f'{below:,} of {what} ({below / len(sides):.1%}) are smaller than the finest stride, '
            f'{network.stride:g} pixels, and may not be learned: train with larger images'
            f'{" or smaller tiles" if data.tile else ""}',
            'sizes',
        )


def _about_class_names(view: ConfigView, data: Data) -> list[tuple[str, str]]:
    """The errors and warnings of ``ptnt check`` about class names, such as objects without one."""
    try:
        splits = tuple(split for split in SPLITS if view.split(split).loader)
        checked, _ = inspection.read_data(view, splits)
        found = [finding for part in checked for finding in findings_of_names(part)]
    except Exception as error:  # a data set of any library may raise anything
        data.notes.append(f'the check of the class names: {one_line(error)}')
        return []
    wrong = of_kind(found, Severity.ERROR) + of_kind(found, Severity.WARNING)
    return [(f'{finding.severity}: {finding}: {finding.advice}', 'classes') for finding in wrong]


def _classes(data: Data, colours: Sequence[str]) -> Iterator[ClassRow]:
    counts, pixels = [], []
    for images in data.splits.values():
        found, area = Counter(), Counter()
        for image in images:
            found.update(image.labels)
            area.update(dict(zip(image.labels, image.pixels, strict=False)))
        counts.append(found)
        pixels.append(area)
    totals = [sum(area.values()) or 1 for area in pixels]
    sides = _trained_sides(data)
    for i, name in enumerate(data.classes):
        shares = [area[i] / total for area, total in zip(pixels, totals, strict=True)]
        yield ClassRow(
            name,
            colours[i],
            [found[i] for found in counts],
            sides.get(i, ()),
            shares if data.kind == 'mask' else (),
        )


def _trained_sides(data: Data) -> dict[int, list[float]]:
    """The side of each training object by class: the root of its box's area, as trained."""
    sides: dict[int, list[float]] = {}
    for image in data.splits.get('train', ()):
        if not len(image.boxes) or image.size not in data.trained:
            continue
        factors = np.divide(data.trained[image.size], image.size)
        extents = (image.boxes[:, 2:] - image.boxes[:, :2]) * factors
        for label, side in zip(image.box_labels, np.sqrt(extents.prod(axis=1)), strict=True):
            sides.setdefault(label, []).append(float(side))
    return sides


def _side_bars(sides: np.ndarray, stride: float | None) -> Iterator[Bar]:
    """The number of objects in each octave of sizes, from the smallest to the largest."""
    if not len(sides):
        return
    octaves = np.floor(np.log2(np.maximum(sides, 1))).astype(int)
    counts = np.bincount(octaves)
    for octave in range(octaves.min(), octaves.max() + 1):
        low, high = 2**octave, 2 ** (octave + 1)
        label = f'{low}–{high}' if octave else 'below 2'
        yield Bar(
            f'{label} px',
            int(counts[octave]),
            counts[octave] / counts.max(),
            is_low=stride is not None and high <= stride,
        )


def _size_bars(data: Data) -> Iterator[Bar]:
    """The number of images of each size; where there are many, in octaves of the longer side."""
    sizes = [image.size for images in data.splits.values() for image in images if image.size]
    groups: dict[Any, list[tuple[int, int]]] = {}
    are_few = len(set(sizes)) <= _SIZES
    for size in sizes:
        groups.setdefault(size if are_few else int(np.log2(max(size))), []).append(size)
    most = max(map(len, groups.values()), default=1)
    order = (lambda key: -len(groups[key])) if are_few else None
    for key in sorted(groups, key=order):
        label = _pixels(key) if are_few else f'{2**key}–{2 ** (key + 1)} px'
        trained = [data.trained[size] for size in set(groups[key]) if size in data.trained]
        spans = ((min(sides), max(sides)) for sides in zip(*trained, strict=True))
        shown = ((f'{low:.0f}', f'{high:.0f}') for low, high in spans)
        note = ' × '.join(low if low == high else f'{low}–{high}' for low, high in shown)
        yield Bar(label, len(groups[key]), len(groups[key]) / most, note=note)


def _pixels(size: Sequence[float]) -> str:
    return f'{size[0]:.0f} × {size[1]:.0f}'


def _problems(folder: Path, images: object, data: Data) -> list[ProblemsOfImage]:
    """The problems of a project, whose config has the folder of its data in ``images``."""
    file = folder / PROBLEMS
    if not file.is_file():
        return []
    root = Path(images) if isinstance(images, str) else None
    used = [image.path for split in data.splits.values() for image in split]
    # Skipped images are in no split.
    skipped = Tree(root).images if root is not None and root.is_dir() else []
    return group_problems(file.read_text(encoding='utf-8'), root, [*used, *skipped])


def _with_pictures(
    problems: Sequence[ProblemsOfImage], value_range: Range | None
) -> list[tuple[ProblemsOfImage, dict[str, object] | None]]:
    """Problems with the pictures of their images, those with a picture first, as many as fit."""
    first = sorted(problems, key=lambda group: group.image is None)
    files = [group.image for group in first[:_PROBLEM_PICTURES]]
    return list(zip_longest(first, _pictures(files, value_range)))


def _pairs(
    copies: Sequence[Copy], value_range: Range | None
) -> Iterator[list[tuple[str, Path, dict[str, object] | None]]]:
    """For each image of a pair: its split, its file, its picture."""
    files = [path for copy in copies for path in copy.images]
    pictures = _pictures(files, value_range)
    for copy in copies:
        yield [(split, path, pictures.pop(0)) for split, path in zip(*copy, strict=True)]


def _pictures(
    files: Sequence[Path | None], value_range: Range | None
) -> list[dict[str, object] | None]:
    """Small pictures of images; None for those that cannot be read."""

    def read(file: Path | None) -> dict[str, object] | None:
        try:
            return file and photograph(read_rgb(file, value_range), _SMALL_SIDE)
        except UserError:
            return None

    return list(on_threads(read, files, 'Reading pictures'))
