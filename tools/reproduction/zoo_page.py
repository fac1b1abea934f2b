"""The model zoo as a page and as MIM's metafile, from configs and logs."""

from itertools import groupby
from typing import Any

import yaml

from ptnt_mm.utils.tables import markdown
from reproduction.entries import Figures
from reproduction.progress import Progress

_HEAD = """# Model zoo

Made by `python tools/reproduce.py collect` out of the configs and the logs in `work_dirs`; not to
be edited. Figures are in percent. "Published" is arXiv 2201.00978, as far as we could confirm it,
and for ImageNet its authors' readme; there is no semantic segmentation, so those recipes are ours.
All other figures were measured here, at the end of the schedule, and are missing where no training
was finished. AP small, medium and large is that of boxes, for objects below 32 x 32 pixels, below
96 x 96, and above. [Reproducing](reproduce.md) tells how to fill the page.
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


def zoo_page(rows: list[Progress]) -> str:
    """Return the text of docs/model_zoo.md: one table for each method and benchmark."""
    parts = [_HEAD]
    families = groupby(rows, key=lambda row: (row.entry.method, row.entry.benchmark))
    for (method, benchmark), group in families:
        title = f'{method}, {benchmark.name} {benchmark.split}'
        parts.append(f'## {title}\n\n{_table(list(group))}\n')
    return '\n'.join(parts)


def _table(rows: list[Progress]) -> str:
    """What was measured, beside what was published where anything was."""
    entry = rows[0].entry
    columns = {
        'config': [f'[`{row.entry.name}`](../configs/{row.entry.name}.py)' for row in rows],
        'backbone': [row.entry.backbone for row in rows],
        f'{entry.schedule.unit}s': [f'{row.entry.schedule.length:,}' for row in rows],
    }
    for name in (metric.name for metric in entry.benchmark.metrics):
        published = [_figure(row.entry.published, name) for row in rows]
        if any(published):
            columns[f'{name}, published'] = published
        columns[name] = [_figure(row.measured, name) for row in rows]
    return markdown(columns, zip(*columns.values(), strict=True))


def _figure(figures: Figures, name: str) -> str:
    return f'{figures[name]:.1f}' if name in figures else ''


def metafile(rows: list[Progress]) -> str:
    """Return the text of configs/metafile.yml, which MIM and MMEngine's inferencers read.

    Results and weights that were not produced are left out.
    """
    content = {'Collections': [_COLLECTION], 'Models': list(map(_model, rows))}
    return yaml.safe_dump(content, sort_keys=False, width=100)


def _model(row: Progress) -> dict[str, Any]:
    entry = row.entry
    model = {
        'Name': entry.name,
        'In Collection': 'PyramidTNT',
        'Config': f'configs/{entry.name}.py',
        'Metadata': {
            f'{entry.schedule.unit.capitalize()}s': entry.schedule.length,
            'Training Data': entry.benchmark.name,
            'Architecture': [entry.backbone, entry.method],
        },
    }
    measured = [metric for metric in entry.benchmark.metrics if metric.name in row.measured]
    results = [
        {
            'Task': task,
            'Dataset': entry.benchmark.name,
            'Metrics': {metric.name: row.measured[metric.name] for metric in group},
        }
        for task, group in groupby(measured, key=lambda metric: metric.task)
    ]
    return {**model, 'Results': results} if results else model
