"""The results of a benchmark, as tables and as JSON."""

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from benchmark.timing import FORWARD, Setting
from ptnt_mm.utils.tables import new_table, to_text


@dataclass(frozen=True)
class Row:
    """Measurements of one contender in one setting.

    Attributes:
        seconds: The time of each round.
        peak_bytes: Memory beyond that of the loaded model; None if unknown.
        multiply_adds: Multiply-adds of a forward pass of one image, including attention products.
    """

    name: str
    setting: Setting
    seconds: tuple[float, ...]
    peak_bytes: int | None = None
    multiply_adds: int | None = None

    @property
    def median_seconds(self) -> float:
        """The number to quote."""
        return statistics.median(self.seconds)

    @property
    def images_per_second(self) -> float:
        """Images per second at the median time."""
        return self.setting.batch / self.median_seconds

    @property
    def multiply_adds_per_second(self) -> float | None:
        """Published multiply-adds per second; a training step counts as three forward passes."""
        if self.multiply_adds is None:
            return None
        passes = 1 if self.setting.mode == FORWARD else 3
        return passes * self.multiply_adds * self.images_per_second

    def ratio(self, rows: list['Row'], baseline: str) -> float | None:
        """The median over rounds of this time / the baseline's in the same setting."""
        for other in rows:
            if (other.name, other.setting) == (baseline, self.setting):
                pairs = zip(self.seconds, other.seconds, strict=True)
                return statistics.median(own / base for own, base in pairs)
        return None


def to_dicts(rows: list[Row], baseline: str) -> list[dict[str, Any]]:
    """The numbers, ready for JSON."""
    return [
        {
            'name': row.name,
            **asdict(row.setting),
            'seconds': row.seconds,
            'median_seconds': row.median_seconds,
            'images_per_second': row.images_per_second,
            'ratio': row.ratio(rows, baseline),
            'peak_bytes': row.peak_bytes,
            'multiply_adds': row.multiply_adds,
            'multiply_adds_per_second': row.multiply_adds_per_second,
        }
        for row in rows
    ]


def to_tables(rows: list[Row], baseline: str) -> str:
    """The numbers as one Markdown table for each setting, with ratios to a contender's times."""
    headings = ('seconds', 'min to max', 'images/s', f'to {baseline}', 'peak MiB', 'GMAC', 'GMAC/s')
    tables = {row.setting: new_table('model', *headings) for row in rows}
    for row in rows:
        ratio, rate = row.ratio(rows, baseline), row.multiply_adds_per_second
        tables[row.setting].add_row(
            row.name,
            _digits(row.median_seconds),
            f'{_digits(min(row.seconds))} to {_digits(max(row.seconds))}',
            f'{row.images_per_second:.2f}',
            '' if ratio is None else f'{ratio:.2f}',
            '' if row.peak_bytes is None else f'{row.peak_bytes / 2**20:.0f}',
            '' if rate is None else f'{row.multiply_adds / 1e9:.1f}',
            '' if rate is None else f'{rate / 1e9:.0f}',
        )
    return '\n\n'.join(f'{setting}\n\n{to_text(table)}' for setting, table in tables.items())


def _digits(seconds: float) -> str:
    """Milliseconds, or their tenths where there are few."""
    return f'{seconds:.3f}' if seconds >= 0.1 else f'{seconds:.4f}'
