"""Show what is installed, what is expected, and the command that fixes each problem.

ptnt doctor
"""

import argparse
from dataclasses import asdict

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.cli.json_output import add_json, json_output
from ptnt_mm.doctor.diagnosis import BROKEN, examine
from ptnt_mm.utils.console import show
from ptnt_mm.utils.progress import waiting
from ptnt_mm.utils.tables import new_listing, to_text


def main(words: list[str] | None = None) -> int:
    """Inspect the installation; return 1 if something is broken."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    add_json(parser)
    return parser


def _run(args: argparse.Namespace) -> int:
    with json_output(args.json, args.overwrite) as write:
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
