"""Write the model zoo as a page and as MIM's metafile, from configs and logs."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import yaml

from ptnt_mm.utils.tables import markdown
from reproduction.benchmarks import Benchmark, Metric
from reproduction.collect import Progress
from reproduction.entries import PAPER, PAPER_URL, Figures

_TITLE = 'PyramidTNT: Improved Transformer-in-Transformer Baselines with Pyramid Architecture'

_HEAD = f"""# Model zoo

Made by `python tools/reproduce.py collect` out of the configs and the logs in `work_dirs`; not to
be edited. Figures are in percent. "Published" is {PAPER}, as far as we could confirm it; it has
no semantic segmentation, so those recipes are ours. "Measured here" is the evaluation at the end of
the schedule, and empty where no training was finished. [Reproducing](reproduce.md) tells how to
fill it.
"""


def page(rows: list[Progress]) -> str:
    """Return the text of docs/model_zoo.md: one table for each method and benchmark."""
    parts = [_HEAD]
    for (method, benchmark), group in groupby(rows, key=_family):
        group = list(group)
        columns = ('config', 'backbone', group[0].entry.schedule.units, *_headings(benchmark))
        title = f'{method}, {benchmark.name} {benchmark.split}'
        parts.append(f'## {title}\n\n{markdown(columns, map(_cells, group))}\n')
    return '\n'.join(parts)


def metafile(rows: list[Progress]) -> str:
    """Return the text of configs/metafile.yml, which MIM and MMEngine's inferencers read.

    Results and weights that were not produced are left out.
    """
    collection = {
        'Name': 'PyramidTNT',
        'Metadata': {
            'Training Data': list(dict.fromkeys(row.entry.benchmark.name for row in rows)),
            'Training Techniques': ['AdamW', 'Weight Decay'],
            'Architecture': ['PyramidTNT'],
        },
        'Paper': {'URL': PAPER_URL, 'Title': _TITLE},
        'README': 'docs/reproduce.md',
    }
    content = {'Collections': [collection], 'Models': [_model(row) for row in rows]}
    return yaml.safe_dump(content, sort_keys=False, width=100)


def _family(row: Progress) -> tuple[str, Benchmark]:
    return row.entry.method, row.entry.benchmark


def _headings(benchmark: Benchmark) -> Iterator[str]:
    """Yield the headings of the metric columns, in the order of :func:`_figures`."""
    for metric in benchmark.metrics:
        if benchmark.in_paper:
            yield from (f'published {metric.name}', 'measured here')
        else:
            yield f'{metric.name} measured here'


def _cells(row: Progress) -> tuple[str, ...]:
    entry = row.entry
    link = f'[`{entry.name}`](../configs/{entry.name}.py)'
    return link, entry.backbone, f'{entry.schedule.length:,}', *_figures(row)


def _figures(row: Progress) -> Iterator[str]:
    for metric in row.entry.benchmark.metrics:
        if row.entry.benchmark.in_paper:
            yield _figure(row.entry.published, metric)
        yield _figure(row.measured, metric)


def _figure(figures: Figures, metric: Metric) -> str:
    return f'{figures[metric.name]:.1f}' if metric.name in figures else ''


def _model(row: Progress) -> dict[str, Any]:
    entry = row.entry
    model = {
        'Name': entry.name,
        'In Collection': 'PyramidTNT',
        'Config': f'configs/{entry.name}.py',
        'Metadata': {
            entry.schedule.units.capitalize(): entry.schedule.length,
            'Training Data': entry.benchmark.name,
            'Architecture': [entry.backbone, entry.method],
        },
    }
    results = list(_results(row))
    return {**model, 'Results': results} if results else model


def _results(row: Progress) -> Iterator[dict[str, Any]]:
    for metric in row.entry.benchmark.metrics:
        if metric.name in row.measured:
            yield {
                'Task': metric.task,
                'Dataset': row.entry.benchmark.name,
                'Metrics': {metric.name: row.measured[metric.name]},
            }
