"""Values of several runs side by side, with differences from the first run that has them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Unit(NamedTuple):
    """Format of a metric, and whether higher is better."""

    pattern: str
    factor: float = 1
    more_is_better: bool | None = None  # None: neither
    has_bar: bool = False  # values are between 0 and 1

    def text(self, value: float | None) -> str:
        """Format a value; a dash for None."""
        return '–' if value is None else self.pattern.format(self.factor * value)

    def difference(self, value: float) -> tuple[str, str]:
        """Format a difference with its sign, and name its class: 'better', 'worse' or ''."""
        text = self.text(abs(value))
        if text == self.text(0):
            return text, ''
        kinds = {None: '', value > 0: 'better', value < 0: 'worse'}
        return f'{"+" if value > 0 else "−"}{text}', kinds[self.more_is_better]


SCORE = Unit('{:.3f}', more_is_better=True, has_bar=True)
PERCENT = Unit('{:.1f} %', 100, more_is_better=True, has_bar=True)
SHARE = Unit('{:.1f} %', 100)
COST = Unit('{:.3f}', more_is_better=False)
ERROR_COUNT = Unit('{:.0f}', more_is_better=False)
COUNT = Unit('{:.0f}')


class Cell(NamedTuple):
    """A value for the page: the number to sort by, a text, and a CSS class."""

    value: float | None
    text: str
    kind: str = ''  # 'better' or 'worse' for a difference


class Column(NamedTuple):
    """Values of a run, or its differences from the first run."""

    heading: str
    run: str
    metric: str  # name of the metric; the reader chooses which are shown
    has_bar: bool
    cells: list[Cell]


@dataclass
class MetricTable:
    """Metrics of runs by their row."""

    runs: Sequence[str]  # all runs of the page: headings omit the name of a single one
    rows: list[str]
    columns: list[Column] = field(default_factory=list)

    @property
    def metrics(self) -> list[str]:
        """The metrics that have columns."""
        return list(dict.fromkeys(column.metric for column in self.columns))

    @property
    def compares(self) -> bool:
        """Whether more than one run has values."""
        return len({column.run for column in self.columns if column.run}) > 1

    def add(
        self, metric: str, unit: Unit, values: Mapping[str, Mapping[str, float | None]]
    ) -> None:
        """Add a metric: for each run a column and, after the first, one of differences.

        Args:
            metric: Its name.
            unit: Its unit.
            values: By run and by row; a row may be missing.
        """
        baseline = None
        for run, of_rows in values.items():
            own = [of_rows.get(row) for row in self.rows]
            heading = f'{run}: {metric}' if len(self.runs) > 1 else metric
            cells = [Cell(value, unit.text(value)) for value in own]
            self.columns.append(Column(heading, run, metric, unit.has_bar, cells))
            if baseline is not None:
                cells = [difference(unit, *pair) for pair in zip(own, baseline, strict=True)]
                self.columns.append(Column('difference', run, metric, False, cells))
            else:
                baseline = own


def difference(unit: Unit, value: float | None, first: float | None) -> Cell:
    """Compare a value with that of the first run; a dash if either is missing."""
    if value is None or first is None:
        return Cell(None, '–')
    return Cell(value - first, *unit.difference(value - first))


def table_of_classes(
    runs: Sequence[str], rows: Mapping[str, Sequence[Mapping]], unit_of: Callable[[str], Unit]
) -> MetricTable:
    """Merge tables of classes, whose first key is the class: one row for each class of any run.

    A metric without a direction, such as the number of objects, is shown once if equal in all runs.
    """
    by_class = {run: {row['Class']: row for row in of_run} for run, of_run in rows.items()}
    table = MetricTable(
        runs, list(dict.fromkeys(name for found in by_class.values() for name in found))
    )
    for metric in next(iter(rows.values()))[0]:
        if metric == 'Class':
            continue
        values = {
            run: {name: row[metric] for name, row in found.items()}
            for run, found in by_class.items()
        }
        unit = unit_of(metric)
        alike = len({tuple(found.items()) for found in values.values()}) == 1
        if unit.more_is_better is None and alike:
            cells = [Cell(x, unit.text(x)) for x in next(iter(values.values())).values()]
            table.columns.append(Column(metric, '', '', False, cells))
        else:
            table.add(metric, unit, values)
    return table
