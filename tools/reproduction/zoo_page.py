"""The model zoo as a page and as MIM's metafile."""

from collections.abc import Mapping
from itertools import groupby

import yaml

from ptnt_mm.utils.tables import markdown
from ptnt_mm.workbench.config.zoo import config_path, config_root
from reproduction.entries import NETWORKS, Entry, Figures

_HEAD = """# Model zoo

All results are in percent. "Paper" is that of the network ([all of its numbers](experiments.md));
PyramidTNT's detection table [we could not read](alternatives.md#the-source-of-each-mark). All other
numbers were measured here, with the last checkpoint of the schedule. `python tools/reproduce.py
collect` writes this page from the configs, the logs in `work_dirs`, and the results of `ptnt test`.
"""

_NOTHING = (
    '**Nothing has been trained on these data sets here yet**, so all numbers are from the '
    'papers.\n'
)

_REST = """## No result yet

PyramidTNT's paper has no semantic segmentation, so those recipes are ours.
[Reproducing](../reproduce.md) lists the commands, and explains how to fill this page.
"""

_PAPERS = {
    'PyramidTNT': (
        '2201.00978',
        'PyramidTNT: Improved Transformer-in-Transformer Baselines with Pyramid Architecture',
    ),
    'TNT': ('2103.00112', 'Transformer in Transformer'),
    'CPVT': ('2102.10882', 'Conditional Positional Encodings for Vision Transformers'),
}
_COLLECTIONS = [
    {
        'Name': name,
        'Metadata': {
            'Training Data': ['COCO', 'ADE20K', 'Cityscapes', 'ImageNet-1k'],
            'Training Techniques': ['AdamW', 'Weight Decay'],
            'Architecture': [name],
        },
        'Paper': {'URL': f'https://arxiv.org/abs/{number}', 'Title': title},
        'README': 'docs/reproduce.md',
    }
    for name, (number, title) in _PAPERS.items()
]

Costs = Mapping[str, tuple[float, float]]
"""Millions of parameters and multiply-adds in units of 1e9, by config."""


def zoo_page(entries: list[Entry], measured: Mapping[str, Figures], costs: Costs) -> str:
    """Return docs/research/model_zoo.md: a table for each method, then a line for the rest.

    Args:
        entries: All rows, in the order of the page.
        measured: The results of finished runs, by config.
        costs: Their costs.
    """
    tables, rest = [_HEAD, *([] if measured else [_NOTHING])], [_REST]
    for (method, data), group in groupby(entries, key=lambda entry: (entry.method, entry.data)):
        group = list(group)
        known = [entry for entry in group if entry.published or entry.name in measured]
        if known:
            tables.append(f'## {method}, {data}\n\n{_table(known, measured, costs)}\n')
        unknown = (entry for entry in group if entry not in known)
        for network, rows in groupby(unknown, key=lambda entry: entry.network):
            rows = list(rows)
            prefix = f'{rows[0].name.partition(f"_{network}_")[0]}_{network}_'
            links = ' · '.join(_link(entry, prefix) for entry in rows)
            rest.append(f'- **{method}**, {data}, `{prefix}`...: {links}')
    return '\n'.join([*tables, *rest, ''])


def _path(entry: Entry) -> str:
    file = config_path(entry.name).relative_to(config_root())
    return f'configs/{file.as_posix()}'


def _link(entry: Entry, prefix: str = '') -> str:
    return f'[`{entry.name.removeprefix(prefix)}`](../../{_path(entry)})'


def _table(entries: list[Entry], measured: Mapping[str, Figures], costs: Costs) -> str:
    """Return a row for each config, without metrics that none of them has."""
    columns = {
        'config': [_link(entry) for entry in entries],
        f'{entries[0].unit}s': [f'{entry.length:,}' for entry in entries],
    }
    for name in entries[0].metrics:
        columns[f'{name} (paper)'] = [_figure(entry.published, name) for entry in entries]
        columns[name] = [_figure(measured.get(entry.name, {}), name) for entry in entries]
    for i, name in enumerate(('parameters (M)', 'multiply-adds (G)')):
        values = [costs.get(entry.name) for entry in entries]
        columns[name] = [f'{value[i]:.1f}' if value else '' for value in values]
    columns = {heading: cells for heading, cells in columns.items() if any(cells)}
    return markdown(columns, zip(*columns.values(), strict=True))


def _figure(figures: Figures, name: str) -> str:
    return f'{figures[name]:.1f}' if name in figures else ''


def metafile(entries: list[Entry]) -> str:
    """Return configs/metafile.yml, with which MIM and MMEngine's inferencers find configs."""
    models = [
        {
            'Name': entry.name,
            # A DETR with a PEG belongs to the paper of the PEG.
            'In Collection': NETWORKS[entry.network] if entry.network != 'r50' else 'CPVT',
            'Config': _path(entry),
            'Metadata': {
                f'{entry.unit.capitalize()}s': entry.length,
                'Training Data': entry.data.rpartition(' ')[0],
                'Architecture': [entry.architecture, entry.method],
            },
        }
        for entry in entries
    ]
    content = {'Collections': _COLLECTIONS, 'Models': models}
    return yaml.safe_dump(content, sort_keys=False, width=100)
