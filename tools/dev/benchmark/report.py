"""The results of a benchmark, as tables and as JSON."""

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from benchmark.contenders import BASELINE
from benchmark.timing import FORWARD, Setting, Times
from ptnt_mm.utils.tables import new_table, to_text


@dataclass(frozen=True)
class Measurement:
    """The results of one contender in one setting."""

    name: str
    setting: Setting
    times: Times
    peak_bytes: int | None
    multiply_adds: int | None
    """For the forward pass of one image, attention products included."""

    @property
    def images_per_second(self) -> float:
        """Images per second at the median time."""
        return self.setting.batch / self.times.median

    @property
    def multiply_adds_per_second(self) -> float | None:
        """Published multiply-adds per second; a training step counts as three forward passes."""
        if self.multiply_adds is None:
            return None
        passes = 1 if self.setting.mode == FORWARD else 3
        return passes * self.multiply_adds * self.images_per_second


@dataclass(frozen=True)
class Report:
    """All rows, and the machine that they were measured on."""

    rows: tuple[Measurement, ...]
    machine: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, ready for JSON."""
        rows = [
            {
                'name': row.name,
                **asdict(row.setting),
                'seconds': list(row.times.rounds),
                'median_seconds': row.times.median,
                'images_per_second': row.images_per_second,
                'ratio': _ratio(row, self.rows),
                'peak_bytes': row.peak_bytes,
                'multiply_adds': row.multiply_adds,
                'multiply_adds_per_second': row.multiply_adds_per_second,
            }
            for row in self.rows
        ]
        return {'machine': self.machine, 'baseline': BASELINE, 'rows': rows}

    def to_text(self) -> str:
        """The numbers as one Markdown table for each setting."""
        settings = dict.fromkeys(row.setting for row in self.rows)
        machine = ', '.join(f'{key} {value}' for key, value in self.machine.items())
        return '\n\n'.join([machine, *(self._table(setting) for setting in settings)])

    def _table(self, setting: Setting) -> str:
        headings = ('seconds', 'min to max', 'images/s', f'to {BASELINE}', 'peak MiB', 'G, G/s')
        table = new_table('model', *headings)
        for row in self.rows:
            if row.setting == setting:
                table.add_row(row.name, *self._cells(row))
        return f'{setting}\n\n{to_text(table)}'

    def _cells(self, row: Measurement) -> tuple[str, ...]:
        ratio = _ratio(row, self.rows)
        rate = row.multiply_adds_per_second
        return (
            f'{row.times.median:.3f}',
            f'{min(row.times.rounds):.3f} to {max(row.times.rounds):.3f}',
            f'{row.images_per_second:.2f}',
            '' if ratio is None else f'{ratio:.2f}',
            '' if row.peak_bytes is None else f'{row.peak_bytes / 2**20:.0f}',
            '' if rate is None else f'{row.multiply_adds / 1e9:.1f}, {rate / 1e9:.0f}',
        )


def spread(rows: list[Measurement]) -> float:
    """Return the median over contenders of slowest round / median round."""
    return statistics.median(max(row.times.rounds) / row.times.median for row in rows)


def _ratio(row: Measurement, rows: tuple[Measurement, ...]) -> float | None:
    """Return the row's time divided by the baseline's in the same setting."""
    for other in rows:
        if other.name == BASELINE and other.setting == row.setting:
            return row.times.ratio(other.times)
    return None
