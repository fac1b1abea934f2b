"""The model zoo as a page and as MIM's metafile."""

from collections.abc import Mapping
from itertools import groupby

import yaml

from ptnt_mm.config.zoo import config_path, config_root
from ptnt_mm.utils.tables import markdown
from reproduction.entries import Entry, Figures

_HEAD = """# Model zoo

All numbers are in percent. "Paper" is arXiv 2201.00978, whose detection table
[we could not read](alternatives.md#the-source-of-each-mark), and for ImageNet its authors' README.
All other numbers were measured here, at the end of the schedule. `ti`, `s`, `m` and `b` in a name
are PyramidTNT-Ti, -S, -M and -B. `python tools/reproduce.py collect` writes this page from the
configs and the logs in `work_dirs`.
"""

_NOTHING = (
    '**Nothing has been trained on these data sets here yet**, so all numbers are from the paper.\n'
)

_REST = """## No result yet

The paper has no semantic segmentation, so those recipes are ours. [Reproducing](reproduce.md)
lists the commands, and explains how to fill this page.
"""

_COLLECTION = {
    'Name': 'PyramidTNT',
    'Metadata': {
        'Training Data': ['COCO', 'ADE20K', 'Cityscapes', 'ImageNet-1k'],
        'Training Techniques': ['AdamW', 'Weight Decay'],
        'Architecture': ['PyramidTNT'],
    },
    'Paper': {
        'URL': 'https://arxiv.org/abs/2201.00978',
        'Title': 'PyramidTNT: Improved Transformer-in-Transformer Baselines with Pyramid '
        'Architecture',
    },
    'README': 'docs/reproduce.md',
}


def zoo_page(entries: list[Entry], measured: Mapping[str, Figures]) -> str:
    """Return docs/model_zoo.md: a table of results for each method, then a line for the rest.

    Args:
        entries: All rows, in the order of the page.
        measured: The results of finished runs, by config.
    """
    tables, rest = [_HEAD, *([] if measured else [_NOTHING])], [_REST]
    for (method, data), group in groupby(entries, key=lambda entry: (entry.method, entry.data)):
        group = list(group)
        known = [entry for entry in group if entry.published or entry.name in measured]
        if known:
            tables.append(f'## {method}, {data}\n\n{_table(known, measured)}\n')
        unknown = [entry for entry in group if entry not in known]
        if unknown:
            prefix = unknown[0].name.partition('_ptnt_')[0] + '_ptnt_'
            links = ' · '.join(_link(entry, prefix) for entry in unknown)
            rest.append(f'- **{method}**, {data}, `{prefix}`...: {links}')
    return '\n'.join([*tables, *rest, ''])


def _path(entry: Entry) -> str:
    file = config_path(entry.name).relative_to(config_root())
    return f'configs/{file.as_posix()}'


def _link(entry: Entry, prefix: str = '') -> str:
    return f'[`{entry.name.removeprefix(prefix)}`](../{_path(entry)})'


def _table(entries: list[Entry], measured: Mapping[str, Figures]) -> str:
    """Return a row for each config, without metrics that none of them has."""
    columns = {
        'config': [_link(entry) for entry in entries],
        f'{entries[0].unit}s': [f'{entry.length:,}' for entry in entries],
    }
    for name in entries[0].metrics:
        columns[f'{name} (paper)'] = [_figure(entry.published, name) for entry in entries]
        columns[name] = [_figure(measured.get(entry.name, {}), name) for entry in entries]
    columns = {heading: cells for heading, cells in columns.items() if any(cells)}
    return markdown(columns, zip(*columns.values(), strict=True))


def _figure(figures: Figures, name: str) -> str:
    return f'{figures[name]:.1f}' if name in figures else ''


def metafile(entries: list[Entry]) -> str:
    """Return configs/metafile.yml, with which MIM and MMEngine's inferencers find configs."""
    models = [
        {
            'Name': entry.name,
            'In Collection': 'PyramidTNT',
            'Config': _path(entry),
            'Metadata': {
                f'{entry.unit.capitalize()}s': entry.length,
                'Training Data': entry.data.split()[0],
                'Architecture': [f'PyramidTNT-{entry.size.capitalize()}', entry.method],
            },
        }
        for entry in entries
    ]
    content = {'Collections': [_COLLECTION], 'Models': models}
    return yaml.safe_dump(content, sort_keys=False, width=100)
