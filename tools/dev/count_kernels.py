"""Count the launches, bytes and multiply-adds of PyramidTNT on a GPU, part by part, without one.

    python tools/dev/count_kernels.py [--arch small] [--size 800x1344] [--batch 1]

Prints a Markdown table for bfloat16 weights and images: the forward pass in evaluation mode, and
the training step without an optimizer.
"""

import sys
from argparse import Namespace

import torch
from rich.table import Table

from benchmark.kernels import Count, count_forward, count_step, parts_of
from benchmark.timing import size
from ptnt_mm.models import PyramidTNT
from ptnt_mm.models.pyramid_tnt import ARCHS
from ptnt_mm.utils.tables import new_table, to_text
from ptnt_mm.workbench.cli.start import Parser
from ptnt_mm.workbench.cli.values import positive

_COLUMNS = [
    f'{mode}: {what}' for mode in ('forward', 'step') for what in ('launches', 'MB', 'GMAC')
]


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('--arch', choices=ARCHS, default='small')
    parser.add_argument('--size', type=size, default=(800, 1344), metavar='HxW', help='in pixels')
    parser.add_argument('--batch', type=positive, default=1, metavar='B')
    return parser.run(print_counts, words)


def print_counts(args: Namespace) -> None:
    """Print the table."""
    print(to_text(table_of(count_parts(args.arch, args.size, args.batch))))


def count_parts(arch: str, size: tuple[int, int], batch: int = 1) -> dict[str, tuple[Count, Count]]:
    """Count the forward pass and the training step of each part, and of all together."""
    model = PyramidTNT(arch).to('meta', torch.bfloat16)
    image = torch.empty(batch, 3, *size, device='meta', dtype=torch.bfloat16)
    counts: dict[str, tuple[Count, Count]] = {}
    for name, part, inputs in parts_of(model.eval(), image):
        forward = count_forward(part.eval(), inputs)
        step = count_step(part.train(), inputs)
        before = counts.get(name, (Count(), Count()))
        counts[name] = before[0] + forward, before[1] + step
    forwards, steps = zip(*counts.values(), strict=True)
    return counts | {'all': (sum(forwards, Count()), sum(steps, Count()))}


def table_of(counts: dict[str, tuple[Count, Count]]) -> Table:
    """One row for each part."""
    table = new_table('part', *_COLUMNS)
    for name, both in counts.items():
        cells = (
            (count.launches, f'{count.bytes / 1e6:.0f}', f'{count.multiply_adds / 1e9:.1f}')
            for count in both
        )
        table.add_row(name, *(str(cell) for three in cells for cell in three))
    return table


if __name__ == '__main__':
    sys.exit(main())
