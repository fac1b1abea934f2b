"""Class masks: indices, palettes, colours with a table, or black and white."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path, PurePosixPath

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, finder, first_few
from ptnt_mm.workbench.data.class_masks import (
    IGNORED,
    NO_CLASS,
    colour_value,
    count_values,
    is_of_palette,
    read_values,
    shown_value,
    voc_colour,
    without_palette,
    without_soft_edges,
)
from ptnt_mm.workbench.data.formats.voc import image_sets, splits_of
from ptnt_mm.workbench.data.labels import Labels, Outcome
from ptnt_mm.workbench.data.masks import BACKGROUND
from ptnt_mm.workbench.data.reading.class_tables import LABEL_MAP, Table, read_table
from ptnt_mm.workbench.data.reading.collector import Collector
from ptnt_mm.workbench.data.reading.format import Format, Signs
from ptnt_mm.workbench.data.reading.mask_pairs import find_pairs, spread
from ptnt_mm.workbench.data.reading.paired_masks import has_large_numbers, read_pairs
from ptnt_mm.workbench.data.tree import Tree

_UNKNOWN = 0.1  # share of the pixels without a class that is said aloud
_IGNORED = 0.5
_RARE, _MIXED = 0.03, 8  # share of a value, and number of such values, where colours are mixed
_VISIBLE = 8  # levels between shades of grey, at least
_LISTED = 40  # colours
_VALUES = 20  # in one mask, on average; more are hardly classes


def _find(tree: Tree) -> str:
    pairs = find_pairs(tree).masks
    if not pairs or has_large_numbers(list(pairs.values())):
        return ''
    image, mask = next(iter(pairs.items()))
    example = f'{tree.relative(image)} and {tree.relative(mask)}'
    return f'{counted(len(pairs), "pair")} of image and mask, such as {example}'


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    labels = collector.labels
    counts: dict[Path, Counter[int]] = {}
    for image, mask, found in read_pairs(collector, count_values, _listed_splits(tree, labels)):
        counts[mask] = found
        collector.set(replace(image, mask=mask))
    table = read_table(tree)
    plain = _plain_values(list(map(set, counts.values())), table)
    total: Counter[int] = Counter()
    for found in counts.values():
        for value, count in found.items():
            total[plain[value]] += count
    edges = _soft_edges(counts, total, table, labels)
    labels.classes, index_of = _classes(tree, total, edges, table, plain, labels)
    labels.mask_indices = index_of | {
        value: index_of[known] for value, known in plain.items() if known in index_of
    }
    plain_counts = {
        mask: Counter({plain[value]: count for value, count in found.items()})
        for mask, found in counts.items()
    }
    _report_unknown(plain_counts, index_of.keys() | edges | {IGNORED}, labels)
    labels.notes += [*table.notes, *_ignored_shares(total, index_of, table)]
    labels.notes += _odd_shares(total, table)
    if not (table.names or table.colours or edges):
        labels.notes += _too_many(tree, counts, total, labels.classes)
    return collector.finish()


def _listed_splits(tree: Tree, labels: Labels) -> Callable[[Path], str | None]:
    """The split of an image in the lists of ImageSets; several exports may have equal names."""
    lists = {
        root: {PurePosixPath(name).name: s for name, s in splits_of(files, tree, labels).items()}
        for root, files in image_sets(tree, 'Segmentation').items()
    }
    if len(lists) == 1:
        lists = {tree.root: lists.popitem()[1]}
    found = {root: finder(names) for root, names in lists.items()}
    return lambda image: next(
        (find(image.stem) for root, find in found.items() if image.is_relative_to(root)), None
    )


def _plain_values(masks: Sequence[set[int]], table: Table) -> dict[int, int]:
    """The index or the colour that counts, for each value in masks; they differ for palettes."""
    values = set().union(*masks)
    colours_of = defaultdict(set)
    for value in filter(is_of_palette, values):
        colours_of[without_palette(value, False)].add(without_palette(value, True))
    colours = set().union(*colours_of.values())
    has_others = any(value > IGNORED and not is_of_palette(value) for value in values)
    differ = max(map(len, colours_of.values()), default=0) > 1
    in_table = len(colours & table.colours.keys())
    is_inverse = colours == {0, 255} and 255 in colours_of[min(colours_of)]
    by_colour = (
        has_others
        or is_inverse
        or (differ and _colours_recur(masks))
        or in_table > len(colours_of.keys() & table.names.keys()) // 2
    )
    return {value: without_palette(value, by_colour) for value in values}


def _colours_recur(masks: Sequence[set[int]]) -> bool:
    """Whether the colours of palettes recur in several masks, although their indices differ.

    Programs that choose a palette for each file give a colour different indices; others give the
    indices any colours. The most frequent colour, of the background, shows neither.
    """
    colours = Counter(
        without_palette(value, True) for values in masks for value in filter(is_of_palette, values)
    )
    counts = sorted(colours.values())[:-1]
    return sum(count for count in counts if count > 1) > sum(counts) / 2


def _soft_edges(
    counts: Mapping[Path, Counter[int]], total: Counter[int], table: Table, labels: Labels
) -> set[int]:
    """The grey values that are only in soft edges between others."""
    are_greys = all(value <= IGNORED for found in counts.values() for value in found)
    if not are_greys or total.keys() <= table.names.keys() | {IGNORED}:
        return set()
    # Those with the most values show soft edges best.
    masks = sorted(counts, key=lambda mask: -len(counts[mask]))[:20] + spread([*counts], 20)
    areas = without_soft_edges(map(read_values, dict.fromkeys(masks))) if len(total) > 4 else None
    if areas is None:
        return set()
    edges = total.keys() - areas
    share = sum(total[value] for value in edges) / total.total()
    labels.notes.append(
        f'the masks have {len(total)} values, but areas only of '
        f'{", ".join(map(str, sorted(areas)))}: the others, {share:.1%} of the pixels, are soft '
        f'edges{" and are ignored" if len(areas) > 2 else ""}'
    )
    return edges


def _classes(
    tree: Tree,
    total: Counter[int],
    edges: set[int],
    table: Table,
    plain: Mapping[int, int],
    labels: Labels,
) -> tuple[list[str], dict[int, int]]:
    """The names of the classes, and the index of each value in the masks."""
    values = total.keys() - edges
    colours = [value for value in total if value > IGNORED]
    if colours and not table.colours and not all(map(is_of_palette, plain)):
        raise UserError(
            f'the masks in {tree.root} have colours or numbers above 255, and no table gives their '
            'classes: write class_dict.csv there, with a name for each class; colours without a '
            f'line are ignored\n{_template(total)}'
        )
    named, coloured = (len(values & of.keys()) for of in (table.names, table.colours))
    if table.colours and (colours or not table.names or coloured > named):
        return _in_order(table.colours)
    if edges and len(values) == 2:
        dark, light = sorted(values)
        indices = {value: int(2 * value > dark + light) for value in range(IGNORED + 1)}
        return _two_names(table), indices
    if values <= {0, 255}:
        return _two_names(table), {0: 0, 255: 1}
    if table.colours:
        return _in_order(table.names)
    if table.names:
        are_indices = values <= table.names.keys() | {IGNORED}
        table = _fitted_names(table, values, labels)
        if values <= table.names.keys() and not are_indices:
            return _in_order(table.names)
        last = max(table.names)
        names = [table.names.get(i, f'class {i}') for i in range(last + 1)]
        return names, {i: i for i in range(last + 1) if i != IGNORED}
    indices = sorted(values - {IGNORED})
    if indices[-1] >= 2 * len(indices) + 20:
        # Shades of grey are chosen to be visible, so that each is far from the next.
        if min((b - a for a, b in pairwise(sorted(values))), default=0) >= _VISIBLE:
            indices = sorted(values)
        every = list(map(shown_value, indices))
        shown = '; '.join([*every[:8], '...', *every[-2:]] if len(every) > 10 else every)
        ignored = '; 255 is ignored' if IGNORED in values - {*indices} else ''
        last = len(indices) - 1
        read = f's {shown} are read as the classes 0 to {last}' if last else f' {shown} is class 0'
        labels.notes.append(f'the value{read}{ignored}')
    elif indices[0] == 0:
        indices = list(range(indices[-1] + 1))
    names = [f'class {shown_value(value)}' for value in indices]
    if len(names) > 2:
        labels.notes.append('there are no class names: write them to classes.txt, one per line')
    if indices[0] == 0 and _is_background(len(indices), plain):
        names[0] = BACKGROUND
    return names, {value: index for index, value in enumerate(indices)}


def _in_order(names: Mapping[int, str]) -> tuple[list[str], dict[int, int]]:
    """The different names, and the index of the name of each value."""
    classes = list(dict.fromkeys(names.values()))
    return classes, {value: classes.index(name) for value, name in names.items()}


def _template(total: Counter[int]) -> str:
    """The lines of a table of colours, each with its share of the pixels, the largest first."""
    lines = ['name,r,g,b,share of the pixels']
    for i, (value, count) in enumerate(total.most_common(_LISTED)):
        rgb = shown_value(value) if value > IGNORED else f'{value},{value},{value}'
        lines.append(f'class {i},{rgb},{count / total.total():.2%}')
    more = len(total) - _LISTED
    return '\n'.join(lines) + (f'\nand {counted(more, "rarer value")}' if more > 0 else '')


def _fitted_names(table: Table, values: set[int], labels: Labels) -> Table:
    """A list of names for values that it does not fit: shades of grey, or one name too few."""
    indices = sorted(values - {IGNORED})
    names = list(table.names.values())
    is_list = list(table.names) == list(range(len(names)))
    if not is_list or values <= table.names.keys() | {IGNORED}:
        return table
    if indices[-1] == len(names) and indices[0] == 0:
        labels.notes.append(
            f'{table.file.name} has {len(names)} names for the values 0 to {len(names)}: 0 is read '
            f'as {BACKGROUND}'
        )
        return replace(table, names=dict(enumerate([BACKGROUND, *names])))
    for shades in (sorted(values), indices):
        if len(shades) == len(names):
            return replace(table, names=dict(zip(shades, names, strict=True)))
    return table


def _two_names(table: Table) -> list[str]:
    """The names for black and white."""
    names = list(table.names.values())
    if len(names) == 1:
        return [BACKGROUND, *names]
    return names if len(names) == 2 else [BACKGROUND, 'object']


def _is_background(count: int, plain: Mapping[int, int]) -> bool:
    """Whether 0 is the background: it may also be a class, such as sky.

    It is, if it is opposed to a single other class, or is the black of Pascal VOC's palette.
    """
    palette = {value for value in plain if is_of_palette(value)}
    colours = {without_palette(value, True) for value in palette if plain[value] != IGNORED}
    is_black = all(without_palette(value, True) == 0 for value in palette if plain[value] == 0)
    if count == 2:
        return is_black
    voc = {colour_value(*voc_colour(index)) for index in range(IGNORED)}
    return is_black and len(palette) == len(plain) and colours <= voc


def _report_unknown(
    counts: Mapping[Path, Counter[int]], known: Collection[int], labels: Labels
) -> None:
    """Report masks with values that are not classes; those of soft edges are counted."""
    edges = 0
    for mask, found in counts.items():
        unknown = [value for value, _ in found.most_common() if value not in known]
        rare = [value for value in unknown if found[value] < _RARE * found.total()]
        # Where colours are mixed, many occur in a few pixels each.
        if len(rare) > _MIXED:
            edges += sum(found[value] for value in rare)
            unknown = [value for value in unknown if value not in set(rare)]
        if unknown:
            shown = first_few(map(shown_value, unknown))
            labels.report(mask, NO_CLASS, shown, outcome=Outcome.IN_PART)
    if edges:
        share = edges / sum(found.total() for found in counts.values())
        labels.notes.append(
            f'{share:.1%} of the pixels are soft edges, with values between those of classes, and '
            'are ignored'
        )


def _ignored_shares(total: Counter[int], index_of: Mapping[int, int], table: Table) -> list[str]:
    """Remarks about frequent values without a class."""
    notes = []
    for rank, (value, count) in enumerate(total.most_common(5)):
        share = count / total.total()
        if value in index_of:
            continue
        if value == IGNORED and share > _IGNORED:
            notes.append(f'{share:.0%} of the pixels have the value 255, which is ignored')
        elif value != IGNORED and (rank == 0 or share > _UNKNOWN) and table.file:
            rgb = shown_value(value) if value > IGNORED else f'{value},{value},{value}'
            line = f'NAME:{rgb}::' if table.file.name == LABEL_MAP else f'NAME,{rgb}'
            what, advice = f'value {value}', 'name it there'
            if index_of.keys() == table.colours.keys():
                what, advice = f'colour {rgb}', f'add a line such as {line} there'
            notes.append(
                f'{share:.0%} of the pixels have the {what}, which {table.file.name} lacks: they '
                f'are ignored, in training and in scores; if it is a class, such as background, '
                f'{advice}'
            )
    return notes


def _odd_shares(total: Counter[int], table: Table) -> list[str]:
    """Remarks about masks of a single value, and about those that may be inverted."""
    if len(total) == 1:
        (value,) = total
        return [
            f'warning: all masks have only the value {shown_value(value)}, so there is nothing to '
            'learn; transparency is not read'
        ]
    share = total[IGNORED] / max(1, total.total())
    if set(total) == {0, IGNORED} and not table.file and share > 1 / 2:
        return [f'{share:.0%} of the pixels are white, and read as object: is it the background?']
    return []


def _too_many(
    tree: Tree, counts: Mapping[Path, Counter[int]], total: Counter[int], classes: list[str]
) -> list[str]:
    """A remark about more values than there may be classes."""
    each = sum(map(len, counts.values())) / max(1, len(counts))
    used = len(total.keys() - {IGNORED})
    if used <= 10 or (each <= _VALUES and used <= len(counts)):
        return []
    frequent = ', '.join(
        f'{shown_value(value)} ({count / total.total():.1%})'
        for value, count in total.most_common(5)
    )
    return [
        f'{counted(len(classes), "class")} are many for {counted(len(counts), "mask")} with '
        f'{each:.0f} values each; most frequent: {frequent}. If they are classes, write their '
        f'names into {tree.root / "classes.txt"}, a line each; if each number is one object, use '
        '`format=numbered-masks`'
    ]


FORMAT = Format(
    __name__,
    title='Class masks',
    looks_for=(
        'masks named like the images, in a folder of their own, as NAME_mask.png, or as `pairs` '
        'says'
    ),
    tasks=('semantic',),
    order=220,
    find=_find,
    read=_read,
    signs=Signs.PAIRS,
    note=(
        '`images/7.jpg` and `masks/7.png`, `7_sat.jpg` and `7_mask.png`, `img_7` and `mask_7`. '
        'Indices, palettes, black and white, shades of grey; see [Masks](#masks).'
    ),
)
