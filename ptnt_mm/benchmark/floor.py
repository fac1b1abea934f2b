"""A pass against its floor: its arithmetic operators, each alone on memory that is warm."""

import statistics
from dataclasses import dataclass

from ptnt_mm.benchmark.contenders import COMPILED, check_name
from ptnt_mm.benchmark.operations import KINDS, Operations
from ptnt_mm.benchmark.timing import Setting, Times, interleave, prepare
from ptnt_mm.errors import UserError
from ptnt_mm.tables import new_table, to_text


@dataclass(frozen=True)
class Floor:
    """What a pass takes, and what its operators take alone."""

    name: str
    setting: Setting
    counts: dict[str, int]
    """Operators by kind."""

    seconds: dict[str, float]
    """What they take alone, by kind."""

    times: Times
    """Of the pass."""

    @property
    def gap(self) -> float:
        """The part of the floor by which the pass takes longer."""
        return self.times.median / sum(self.seconds.values()) - 1

    def to_text(self) -> str:
        """A Markdown table, from the kinds of operators down to the gap."""
        table = new_table('', 'operators', 'seconds')
        for kind in KINDS:
            table.add_row(kind, str(self.counts[kind]), f'{self.seconds[kind]:.3f}')
        table.add_row('floor', str(sum(self.counts.values())), f'{sum(self.seconds.values()):.3f}')
        table.add_row('the pass', '', f'{self.times.median:.3f}')
        table.add_row('gap', '', f'{self.gap:.0%}')
        return f'{self.name}: {self.setting}\n\n{to_text(table)}'


def measure(name: str, setting: Setting, rounds: int) -> Floor:
    """Time a contender's pass and, in turn with it, each of its operators.

    Args:
        name: A contender, not compiled.
        setting: What it is asked to do, on a CPU.
        rounds: How many times both are timed.

    Raises:
        UserError: the contender cannot run here, or is compiled.
    """
    if check_name(name).endswith(COMPILED):
        raise UserError(
            f'{name}: compiled code has no operators to time alone; '
            f'take {name.removesuffix(COMPILED)!r}'
        )
    run = prepare(name, setting)
    with Operations() as operations:
        run()
    alone = []
    works = {name: run, 'operators': lambda: alone.append(operations.seconds())}
    times = interleave(works, rounds)[name]
    seconds = {kind: statistics.median(found[kind] for found in alone) for kind in KINDS}
    return Floor(name, setting, operations.counts(), seconds, times)
