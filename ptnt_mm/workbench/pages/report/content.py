"""The content of a report's page: runs side by side, and their worst images."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from ptnt_mm.version import __version__
from ptnt_mm.workbench.config.settings import flat_settings
from ptnt_mm.workbench.engine.load_in_range import stated_range
from ptnt_mm.workbench.engine.scalar_logs import main_metric_first
from ptnt_mm.workbench.pages.report.charts import (
    bar_chart,
    choice_chart,
    line_colours,
    training_chart,
)
from ptnt_mm.workbench.pages.report.detection_errors import ERRORS
from ptnt_mm.workbench.pages.report.gallery import collect_gallery
from ptnt_mm.workbench.pages.report.tables import (
    COST,
    COUNT,
    ERROR_COUNT,
    PERCENT,
    SCORE,
    SHARE,
    Cell,
    MetricTable,
    difference,
    table_of_classes,
)
from ptnt_mm.workbench.pages.report.training_run import Curves, TrainingRun

_MOST_BYTES = 6_000_000
"""Limit for all galleries: with 0.9 MB of code and the charts, a page is below 8 MB."""

_MOST_CONFUSED = 24
_MOST_DIFFERENCES = 100

Spec = dict[str, Any]


class Chart(NamedTuple):
    """A chart with its heading, a text below it, and whether the reader may smooth it."""

    title: str
    spec: Spec
    note: str = ''
    noisy: bool = False


def page_content(
    runs: Sequence[TrainingRun], reports: Mapping[str, Any], notes: Mapping[str, str]
) -> dict[str, Any]:
    """Return the variables of the template ``report.html``.

    ``reports`` holds the evaluated predictions of runs, ``notes`` why there are none, both by the
    names of the runs.
    """
    detectors, segmenters = (
        {run.name: reports[run.name] for run in runs if run.task == task and run.name in reports}
        for task in ('detection', 'segmentation')
    )
    names = [run.name for run in runs]
    colours = dict(zip(names, line_colours(len(names)), strict=True))
    comparable = _comparable(detectors)
    charts = _charts_of_detectors(comparable, colours) if detectors else {}
    if segmenters:
        charts['IoU'] = _bars_of_classes(segmenters, 'IoU', colours)
    facts = {run.name: dict(run.facts()) for run in runs}
    for run in runs:
        if run.name in reports:
            facts[run.name]['Evaluated on'] = f'{run.split} split: {reports[run.name].test_split}'
    # Two galleries share the page.
    size = _MOST_BYTES // (2 if detectors and segmenters else 1)
    return dict(
        made=f'{datetime.now():%Y-%m-%d %H:%M} by ptnt_mm {__version__}',
        runs=runs,
        colours=colours,
        facts=facts,
        origins={run.name: dict(run.how_to_repeat()) for run in runs},
        headlines=_headlines(reports),
        notes=notes,
        curves=list(_curves(runs, colours)),
        differences=_differences(runs),
        tables=_tables(names, detectors, comparable, segmenters),
        compared={report.scores.kind for report in comparable.values()},
        detectors=detectors,
        segmenters=segmenters,
        errors=ERRORS,
        confusion=_most_confused,
        charts=charts,
        galleries=[
            collect_gallery(kind, colours, size, stated_range(runs[0].view.test)) if kind else None
            for kind in (detectors, segmenters)
        ],
    )


def _headlines(reports: Mapping[str, Any]) -> dict[str, list[tuple[str, str, Cell | None]]]:
    """The main results of each run: names, values, differences from the first run with them."""
    first, headlines = {}, {}
    for run, report in reports.items():
        unit = report.unit
        headlines[run] = [
            (
                name,
                unit.text(value),
                difference(unit, value, first[name]) if name in first else None,
            )
            for name, value in report.headline().items()
        ]
        first = {**report.headline(), **first}
    return headlines


def _comparable(detectors: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce reports to boxes if some have no masks: AP of boxes is not that of masks.

    A report without boxes is then omitted.
    """
    if len({report.scores.kind for report in detectors.values()}) < 2:
        return dict(detectors)
    comparable = {}
    for run, report in detectors.items():
        of_boxes = [scores for scores in report.all_scores if scores.kind == 'bbox']
        if of_boxes:
            comparable[run] = replace(report, all_scores=of_boxes)
    return comparable


def _tables(
    names: Sequence[str],
    detectors: Mapping[str, Any],
    comparable: Mapping[str, Any],
    segmenters: Mapping[str, Any],
) -> dict[str, MetricTable]:
    """The tables of results, by their place on the page."""
    tables = {}
    if detectors:
        numbers = {run: report.numbers() for run, report in detectors.items()}
        metrics = next(iter(next(iter(numbers.values())).values()))
        tables['twelve'] = MetricTable(names, list(metrics))
        for kind in ('boxes', 'masks'):
            tables['twelve'].add(kind, SCORE, {r: n[kind] for r, n in numbers.items() if kind in n})
        rows = {run: list(report.of_classes()) for run, report in comparable.items()}
        tables['classes'] = table_of_classes(
            names, rows, lambda metric: COUNT if metric == 'objects' else SCORE
        )
        splits = {run: report.split for run, report in comparable.items()}
        counts = {
            run: {kind: split.counts[kind] for kind in ERRORS} for run, split in splits.items()
        }
        tables['kinds'] = MetricTable(names, list(ERRORS))
        tables['kinds'].add('AP', COST, {run: split.costs for run, split in splits.items()})
        tables['kinds'].add('number', ERROR_COUNT, counts)
    if segmenters:
        summaries = {run: report.summary for run, report in segmenters.items()}
        tables['means'] = MetricTable(names, list(next(iter(summaries.values()))))
        tables['means'].add('all classes', PERCENT, summaries)
        rows = {run: list(report.of_classes()) for run, report in segmenters.items()}
        tables['regions'] = table_of_classes(
            names, rows, lambda metric: SHARE if metric == 'pixels' else PERCENT
        )
    return tables


def _curves(runs: Sequence[TrainingRun], colours: Mapping[str, str]) -> Iterator[Chart]:
    """Charts of all runs together if each has one curve, otherwise one chart per run."""
    points = [dict(point, run=run.name) for run in runs for point in run.curves()]
    for kind in dict.fromkeys(point['chart'] for point in points):
        own = [point for point in points if point['chart'] == kind]
        of_runs = {name: [point for point in own if point['run'] == name] for name in colours}
        curves = list(dict.fromkeys(point['curve'] for point in own))
        if len(curves) == 1:
            yield _chart(kind, kind.title, own, 'run', colours)
            continue
        if kind.title.startswith('Evaluation') and len(list(filter(None, of_runs.values()))) > 1:
            main = main_metric_first(curves)[0]
            of_main = [point for point in own if point['curve'] == main]
            yield _chart(kind, f'{kind.title}: {main}', of_main, 'run', colours)
        # In the colour of another run, a curve would seem to belong to that run.
        taken = len(runs) if len(runs) > 1 else 0
        of_curves = dict(zip(curves, line_colours(taken + len(curves))[taken:], strict=True))
        for name, of_run in of_runs.items():
            if of_run:
                title = f'{kind.title}: {name}' if len(runs) > 1 else kind.title
                yield _chart(kind, title, of_run, 'curve', of_curves)


def _chart(
    kind: Curves, title: str, points: Sequence[Mapping], key: str, colours: Mapping[str, str]
) -> Chart:
    """Draw a line for each name that points have at a key, see :meth:`TrainingRun.curves`."""
    rows = [{'name': p[key], kind.unit: p['step'], 'value': p['value']} for p in points]
    return Chart(title, training_chart(rows, kind.unit, colours), kind.note, kind.noisy)


def _differences(runs: Sequence[TrainingRun]) -> list[tuple[str, list[str]]]:
    """Return the keys of configs with different values, and the value of each run."""
    settings = [flat_settings(run.config.to_dict()) for run in runs]
    keys = dict.fromkeys(key for of_run in settings for key in of_run if key != 'work_dir')
    rows = ((key, [of_run.get(key, '–') for of_run in settings]) for key in keys)
    return [row for row in rows if len(set(row[1])) > 1][:_MOST_DIFFERENCES]


def _charts_of_detectors(reports: Mapping[str, Any], colours: Mapping[str, str]) -> dict[str, Spec]:
    costs = [
        dict(name=run, kind=str(kind), AP=round(cost, 4))
        for run, report in reports.items()
        for kind, cost in report.split.costs.items()
    ]
    curves = [dict(row, name=run) for run in reports for row in reports[run].scores.curves()]
    return dict(
        AP=_bars_of_classes(reports, 'AP', colours),
        costs=bar_chart(costs, 'AP', 'kind', colours),
        curves=choice_chart(curves, 'recall', 'precision', 'Class', colours),
    )


def _bars_of_classes(reports: Mapping[str, Any], metric: str, colours: Mapping[str, str]) -> Spec:
    rows = [dict(row, name=run) for run in reports for row in reports[run].of_classes()]
    rows.sort(key=lambda row: -(row[metric] or 0))
    return bar_chart(rows, metric, 'Class', colours)


def _most_confused(names: Sequence[str], counts: np.ndarray) -> dict[str, Any]:
    """Reduce a confusion matrix to the classes that are confused most."""
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
