"""The model zoo as a page and as MIM's metafile, both made of configs and logs."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import yaml

from ptnt_mm.reproduce.collect import Progress
from ptnt_mm.reproduce.entries import PAPER, PAPER_URL
from ptnt_mm.tables import markdown

_TITLE = 'PyramidTNT: Improved Transformer-in-Transformer Baselines with Pyramid Architecture'

_HEAD = f"""# Model zoo

Made by `python tools/reproduce.py collect` out of the configs and the logs in `work_dirs`; not to
be edited. COCO val2017, average precision in percent. "Published" is {PAPER}, as far as we could
confirm it; "measured here" is the evaluation after the last epoch, and empty where no training was
finished. [Reproducing](reproduce.md) tells how to fill it.
"""

_COLUMNS = (
    'config',
    'backbone',
    'epochs',
    'published box AP',
    'measured here',
    'published mask AP',
    'measured here',
)


def page(rows: list[Progress]) -> str:
    """Make docs/model_zoo.md: one table for each detector."""
    parts = [_HEAD]
    for detector, group in groupby(rows, key=lambda row: row.entry.detector):
        parts.append(f'## {detector}\n\n{markdown(_COLUMNS, map(_cells, group))}\n')
    return '\n'.join(parts)


def metafile(rows: list[Progress]) -> str:
    """Make configs/metafile.yml, in the form that MIM and MMEngine's inferencers read.

    What was not produced, results and weights, is left out.
    """
    collection = {
        'Name': 'PyramidTNT',
        'Metadata': {
            'Training Data': 'COCO',
            'Training Techniques': ['AdamW', 'Weight Decay'],
            'Architecture': ['PyramidTNT'],
        },
        'Paper': {'URL': PAPER_URL, 'Title': _TITLE},
        'README': 'docs/reproduce.md',
    }
    content = {'Collections': [collection], 'Models': [_model(row) for row in rows]}
    return yaml.safe_dump(content, sort_keys=False, width=100)


def _cells(row: Progress) -> tuple[str, ...]:
    entry = row.entry
    link = f'[`{entry.name}`](../configs/{entry.name}.py)'
    published, measured = entry.published, row.measured
    figures = (published.box_ap, measured.box_ap, published.mask_ap, measured.mask_ap)
    return link, entry.backbone, str(entry.epochs), *map(_figure, figures)


def _figure(value: float | None) -> str:
    return '' if value is None else f'{value:.1f}'


def _model(row: Progress) -> dict[str, Any]:
    entry = row.entry
    model = {
        'Name': entry.name,
        'In Collection': 'PyramidTNT',
        'Config': f'configs/{entry.name}.py',
        'Metadata': {
            'Epochs': entry.epochs,
            'Training Data': 'COCO',
            'Architecture': [entry.backbone, entry.detector],
        },
    }
    results = list(_results(row))
    return {**model, 'Results': results} if results else model


def _results(row: Progress) -> Iterable[dict[str, Any]]:
    tasks = {
        'Object Detection': {'box AP': row.measured.box_ap},
        'Instance Segmentation': {'mask AP': row.measured.mask_ap},
    }
    for task, metrics in tasks.items():
        if None not in metrics.values():
            yield {'Task': task, 'Dataset': 'COCO', 'Metrics': metrics}
