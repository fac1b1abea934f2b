"""Class masks: indices, palettes, colours with a table, or black and white."""

from dataclasses import replace
from pathlib import Path

from ptnt_mm.labels.class_masks import IGNORED
from ptnt_mm.labels.formats.format import Collector, Format
from ptnt_mm.labels.formats.mask_pairs import find_pairs, has_large_numbers, read_pairs
from ptnt_mm.labels.formats.mask_values import Table, different_values, read_table, shown_value
from ptnt_mm.labels.formats.voc import image_sets, splits_of
from ptnt_mm.labels.model import Labels
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, first_few


def _find(tree: Tree) -> str:
    pairs, _ = find_pairs(tree)
    if not pairs or has_large_numbers(pairs):
        return ''
    image, mask = next(iter(pairs.items()))
    example = f'{tree.relative(image)} and {tree.relative(mask)}'
    return f'{counted(len(pairs), "pair")} of image and mask, such as {example}'


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    labels = collector.labels
    splits: dict[str, str | None] = {}
    for files in image_sets(tree, 'Segmentation').values():
        splits |= splits_of(files, labels)
    values: dict[Path, frozenset[int]] = {}
    for image, mask, found in read_pairs(collector, different_values, splits):
        values[mask] = found
        collector.set(replace(image, mask=mask))
    known = set().union(*values.values())
    labels.classes, labels.mask_indices = _classes(tree, known, read_table(tree), labels)
    for mask, read in values.items():
        if unknown := sorted(read - labels.mask_indices.keys() - {IGNORED}):
            shown = first_few(map(shown_value, unknown))
            labels.report(mask, 'masks with values of no class, which are ignored', shown)
    return collector.finish()


def _classes(
    tree: Tree, values: set[int], table: Table, labels: Labels
) -> tuple[list[str], dict[int, int]]:
    """The names of the classes, and the index of each value in the masks."""
    colours = sorted(value for value in values if value > IGNORED)
    if colours and not table.colours:
        raise UserError(
            f'the masks in {tree.root} have colours or numbers above 255 '
            f'({first_few(map(shown_value, colours))}), and no table gives their classes: write '
            'class_dict.csv there, with the columns name,r,g,b'
        )
    are_indices = values <= table.names.keys() | {IGNORED}
    if table.colours and (colours or values <= table.colours.keys() or not are_indices):
        names = list(dict.fromkeys(table.colours.values()))
        return names, {value: names.index(name) for value, name in table.colours.items()}
    if values <= {0, 255}:
        names = list(table.names.values())
        if len(names) == 1:
            names = ['background', *names]
        elif len(names) != 2:
            names = ['background', 'object']
        return names, {0: 0, 255: 1}
    if table.names:
        last = max(table.names)
        names = [table.names.get(i, f'class {i}') for i in range(last + 1)]
        return names, {i: i for i in range(last + 1) if i != IGNORED}
    indices = sorted(values - {IGNORED})
    # A few values far apart are shades of grey, chosen to be visible.
    if indices[-1] >= 2 * len(indices) + 20:
        indices = sorted(values)
        shades = ', '.join(map(str, indices))
        labels.notes.append(f'the values {shades} are read as the classes 0 to {len(indices) - 1}')
    elif indices[0] == 0:
        indices = list(range(indices[-1] + 1))
    names = ['background' if value == 0 else f'class {value}' for value in indices]
    return names, {value: index for index, value in enumerate(indices)}


FORMAT = Format(
    'class-masks',
    'Class masks',
    'masks named like the images, in masks/, labels/, SegmentationClass/ or as NAME_mask.png',
    ('semantic',),
    _find,
    _read,
)
