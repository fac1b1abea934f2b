"""The experiments of the papers, from ``configs/experiments.yml``: commands and page."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from ptnt_mm.utils.tables import markdown
from ptnt_mm.workbench.config.zoo import config_root

_EVALUATION = 'test_dataloader.'
"""Options that only an evaluation needs begin with this."""

_HEAD = """# The experiments of the papers

Each ablation and variant of PyramidTNT ([2201.00978](https://arxiv.org/abs/2201.00978)), TNT
([2103.00112](https://arxiv.org/abs/2103.00112)) and CPVT
([2102.10882](https://arxiv.org/abs/2102.10882)), with the command that runs it. **All numbers are
theirs**: in percent, as the papers print them. We read TNT's tables in a transcription and CPVT's
numbers in summaries. Nothing was trained here, and rows marked "ours" are in no paper. The commands
are for one GPU; with several, start them as in [Training](../training.md).

The rows are data: [`configs/experiments.yml`](../../configs/experiments.yml).
`python tools/reproduce.py experiments` prints their commands, one per line, `python
tools/reproduce.py try` trains each for two iterations on the demo set, and `python
tools/reproduce.py collect` writes this page. A test builds every row, runs a forward and a backward
pass, and compares parameters and multiply-adds with the paper's.
"""


@dataclass(frozen=True)
class Experiment:
    """A row of a table.

    Attributes:
        shows: What it is.
        config: The name of its config.
        options: Its ``--cfg-options``.
        theirs: The paper's number, or None.
        params: The paper's parameters, in millions, or None.
        macs: The paper's multiply-adds, in units of 1e9, or None.
        test: Whether it evaluates the run of another row.
    """

    shows: str
    config: str
    options: tuple[str, ...] = ()
    theirs: float | None = None
    params: float | None = None
    macs: float | None = None
    test: bool = False

    def __str__(self) -> str:
        return f'{self.config}: {self.shows}'

    @property
    def training_options(self) -> tuple[str, ...]:
        """Options that the training run needs."""
        return tuple(word for word in self.options if not word.startswith(_EVALUATION))


@dataclass(frozen=True)
class Table:
    """A table of a paper, or of several experiments of ours."""

    title: str
    source: str
    metric: str
    rows: tuple[Experiment, ...]
    note: str = ''


def read_tables() -> list[Table]:
    """All tables, in the order of the page."""
    text = (config_root() / 'experiments.yml').read_text()
    return [_table(**settings) for settings in yaml.safe_load(text)]


def _table(config: str, rows: list[dict], **settings: str) -> Table:
    defaults = dict(config=config, options=())
    rows = (defaults | row for row in rows)
    experiments = (Experiment(**row | dict(options=tuple(row['options']))) for row in rows)
    return Table(rows=tuple(experiments), **settings)


def commands(tables: list[Table]) -> Iterator[tuple[Experiment, list[str]]]:
    """Each row and its command. Rows with options have a work dir of their own."""
    work_dirs: dict[tuple, str] = {}
    for row in (row for table in tables for row in table.rows):
        key = row.config, row.training_options
        name = re.sub(r'\W+', '-', row.shows.lower()).strip('-')
        work_dir = work_dirs.setdefault(
            key, f'work_dirs/{row.config}-{name}' if key[1] else f'work_dirs/{row.config}'
        )
        options = ['--cfg-options', *row.options] if row.options else []
        if row.test:
            yield row, ['ptnt', 'test', row.config, f'{work_dir}/epoch_300.pth', *options]
        else:
            other = ['--work-dir', work_dir] if row.options else []
            yield row, ['ptnt', 'train', row.config, *other, *options]


def experiments_page(tables: list[Table]) -> str:
    """Return docs/research/experiments.md."""
    lines = {id(row): shlex.join(words) for row, words in commands(tables)}
    parts = [_HEAD]
    for table in tables:
        note = f' {table.note}' if table.note else ''
        parts.append(f'## {table.title}\n\nFrom {table.source}.{note}\n')
        columns = {
            'experiment': [row.shows for row in table.rows],
            table.metric: [_number(row.theirs) for row in table.rows],
            'parameters (M)': [_number(row.params) for row in table.rows],
            'multiply-adds (G)': [_number(row.macs) for row in table.rows],
            'command': [f'`{lines[id(row)]}`' for row in table.rows],
        }
        columns = {heading: cells for heading, cells in columns.items() if any(cells)}
        parts.append(markdown(columns, zip(*columns.values(), strict=True)) + '\n')
    return '\n'.join(parts)


def _number(value: float | None) -> str:
    return '' if value is None else f'{value:.1f}'
