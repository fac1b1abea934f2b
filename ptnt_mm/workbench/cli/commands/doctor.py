"""``ptnt doctor``: show what is installed, and how to fix it."""

from argparse import Namespace
from dataclasses import asdict

from ptnt_mm.workbench.cli.arguments import Command
from ptnt_mm.workbench.cli.json_output import json_output
from ptnt_mm.workbench.cli.loading import announce
from ptnt_mm.workbench.cli.shared import JSON

# fmt: off
COMMAND = Command(
    'doctor',
    'show what is installed, and how to fix it',
    """Show what is installed, what is expected, and the command that fixes each problem.

ptnt doctor
""",
    words=JSON,
    order=15,
)
# fmt: on


def run(args: Namespace) -> int:
    """Inspect the installation; return 1 if something is broken."""
    from ptnt_mm.utils.console import show
    from ptnt_mm.utils.imports import let_idle_threads_sleep
    from ptnt_mm.utils.progress import waiting
    from ptnt_mm.utils.tables import new_listing, to_text
    from ptnt_mm.workbench.cli.diagnosis import BROKEN, examine

    announce()
    let_idle_threads_sleep()  # as in other commands: the probes' processes show it
    with json_output(args.json) as write:
        with waiting('Importing torch, mmcv and the hosts'):
            rows, environment = examine()
        table = new_listing('', 'found', 'expected', 'verdict')
        for row in rows:
            table.add_row(row.what, row.found or 'not installed', row.expected, row.verdict)
        show(f'{to_text(table)}\n\n{environment}')
        for row in rows:
            if row.problem:
                purpose = 'fix' if row.verdict == BROKEN else 'get'
                print(f'\n{row.what}: {row.problem}\n  to {purpose} it: {row.fix}')
        write([{**asdict(row), 'verdict': row.verdict} for row in rows])
    return int(any(row.verdict == BROKEN for row in rows))
