"""What the page of a report shows: its runs side by side."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import cycle, zip_longest
from typing import Any

import numpy as np

from ptnt_mm.engine.config import flat_settings
from ptnt_mm.report.errors import ERRORS
from ptnt_mm.report.pictures import photograph
from ptnt_mm.report.training_run import TrainingRun
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.scalar_logs import main_metric_first
from ptnt_mm.version import __version__
from ptnt_mm.visualization.charts import LINES, bar_chart, line_chart

_MOST_IMAGES = 48
_MOST_BYTES = 6_000_000
"""Of all galleries: with 0.9 MB of code and the charts, a page is below 8 MB."""

_MARKUP = 4
"""Bytes of the page for each byte of data about boxes or masks."""

_MOST_CONFUSED = 24
_MOST_DIFFERENCES = 100

Spec = dict[str, Any]


def page_content(
    runs: Sequence[TrainingRun], reports: Mapping[str, Any], notes: Mapping[str, str]
) -> dict[str, Any]:
    """What the template ``report.html`` is filled with.

    ``reports`` holds what the predictions of a run say, ``notes`` why there are none, both by the
    names of the runs.
    """
    detectors, segmenters = (
        {run.name: reports[run.name] for run in runs if run.task == task and run.name in reports}
        for task in ('detection', 'segmentation')
    )
    names = [run.name for run in runs]
    charts = _charts_of_detectors(detectors, names) if detectors else {}
    if segmenters:
        charts['IoU'] = _bars_of_classes(segmenters, 'IoU', names)
    # Two galleries share the page.
    size = _MOST_BYTES // (2 if detectors and segmenters else 1)
    colours = dict(zip(names, cycle(LINES), strict=False))
    return dict(
        made=f'{datetime.now():%Y-%m-%d %H:%M} by ptnt_mm {__version__}',
        runs=runs,
        colours=colours,
        facts={run.name: dict(run.facts()) for run in runs},
        reports=reports,
        notes=notes,
        curves=list(_curves(runs)),
        differences=_differences(runs),
        columns_of_boxes=[
            (f'{run}: {what}' if len(runs) > 1 else what, colours[run], numbers)
            for run, report in detectors.items()
            for what, numbers in report.numbers().items()
        ],
        columns_of_maps=[(run, colours[run], one.summary) for run, one in segmenters.items()],
        detectors=detectors,
        segmenters=segmenters,
        errors=ERRORS,
        confusion=_most_confused,
        charts=charts,
        galleries=[kind and _gallery(kind, colours, size) for kind in (detectors, segmenters)],
    )


def _curves(runs: Sequence[TrainingRun]) -> Iterator[tuple[str, Spec]]:
    """Titles and charts: of all runs together where each has one curve, else of each run."""
    points = [dict(point, run=run.name) for run in runs for point in run.curves()]
    names = [run.name for run in runs]
    # Colours of runs would say that a curve belongs to another run.
    unused = (LINES[len(runs) :] or LINES) if len(runs) > 1 else LINES
    for group in dict.fromkeys((point['group'], point['unit']) for point in points):
        own = [point for point in points if (point['group'], point['unit']) == group]
        of_runs = {name: [point for point in own if point['run'] == name] for name in names}
        curves, title = list(dict.fromkeys(point['curve'] for point in own)), group[0]
        if len(curves) == 1:
            yield title, _chart(own, 'run', names)
            continue
        if title.startswith('Evaluation') and len(list(filter(None, of_runs.values()))) > 1:
            main = main_metric_first(curves)[0]
            of_main = [point for point in own if point['curve'] == main]
            yield f'{title}: {main}', _chart(of_main, 'run', names)
        for name, of_run in of_runs.items():
            if of_run:
                heading = f'{title}: {name}' if len(runs) > 1 else title
                yield heading, _chart(of_run, 'curve', curves, unused)


def _chart(
    points: Sequence[Mapping[str, Any]],
    key: str,
    names: Sequence[str],
    colours: Sequence[str] = LINES,
) -> Spec:
    """A line for each name that points, as :meth:`TrainingRun.curves` gives them, have at a key."""
    unit = points[0]['unit']
    rows = [{'name': p[key], unit: p['step'], 'value': p['value']} for p in points]
    return line_chart(rows, unit, 'value', names, colours=colours)


def _differences(runs: Sequence[TrainingRun]) -> list[tuple[str, list[str]]]:
    """Keys of the configs whose values differ, with the value of each run."""
    settings = [flat_settings(run.config.to_dict()) for run in runs]
    keys = dict.fromkeys(key for of_run in settings for key in of_run if key != 'work_dir')
    rows = ((key, [of_run.get(key, '–') for of_run in settings]) for key in keys)
    return [row for row in rows if len(set(row[1])) > 1][:_MOST_DIFFERENCES]


def _charts_of_detectors(reports: Mapping[str, Any], names: Sequence[str]) -> dict[str, Spec]:
    costs = [
        dict(name=run, kind=str(kind), AP=round(cost, 4))
        for run, report in reports.items()
        for kind, cost in report.split.costs.items()
    ]
    curves = [dict(row, name=run) for run in reports for row in reports[run].scores.curves()]
    return dict(
        AP=_bars_of_classes(reports, 'AP', names),
        costs=bar_chart(costs, 'AP', 'kind', names),
        curves=line_chart(curves, 'recall', 'precision', names, choice='Class'),
    )


def _bars_of_classes(reports: Mapping[str, Any], figure: str, names: Sequence[str]) -> Spec:
    rows = [dict(row, name=run) for run in reports for row in reports[run].of_classes()]
    rows.sort(key=lambda row: -(row[figure] or 0))
    return bar_chart(rows, figure, 'Class', names)


def _most_confused(names: Sequence[str], counts: np.ndarray) -> dict[str, Any]:
    """A matrix of which the page shows as many classes as there is room for."""
    mistakes = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
    kept = np.sort(np.argsort(-mistakes, kind='stable')[:_MOST_CONFUSED])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    counts, shares = (matrix[np.ix_(kept, kept)].tolist() for matrix in (counts, shares))
    return dict(
        names=[names[i] for i in kept],
        counts=counts,
        shares=shares,
        left_out=len(names) - len(kept),
    )


def _gallery(reports: Mapping[str, Any], colours: Mapping[str, str], size: int) -> dict[str, Any]:
    """The worst images of all runs, and what each run says of them, in so many bytes at most."""
    of_runs = {run: {one.file: one for one in reports[run].images()} for run in reports}
    ranked = [sorted(found.values(), key=lambda one: -one.cost) for found in of_runs.values()]
    # The worst of each run, then the second of each, and so on.
    names = {one.file: one.name for row in zip_longest(*ranked) for one in filter(None, row)}
    images = []
    for file, name in list(names.items())[:_MOST_IMAGES]:
        seen = {run: found[file] for run, found in of_runs.items() if file in found}
        try:
            picture = photograph(file)
        except UserError as error:
            # Its figures are worth a card without a picture.
            run, worst = next(iter(seen.items()))
            picture = dict(reports[run].size(worst), picture=None, fault=str(error))
        runs = [
            dict(reports[run].details(worst), name=run, colour=colours[run])
            for run, worst in seen.items()
        ]
        size -= len(picture['picture'] or '') + _MARKUP * len(json.dumps(runs))
        if size < 0:
            break
        images.append(dict(picture, name=name, runs=runs))
    runs = [
        dict(name=run, colour=colours[run], classes=getattr(report, 'colours', None))
        for run, report in reports.items()
    ]
    classes = sorted({name for report in reports.values() for name in report.names})
    return dict(runs=runs, classes=classes, images=images, total=len(names))
