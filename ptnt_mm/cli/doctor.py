"""Show what is installed, what is expected, and the one command that mends each problem.

ptnt doctor
"""

# Not our own parser: the doctor has to start where MMEngine is broken.
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter

from ptnt_mm.cli.json_output import add_json, json_output
from ptnt_mm.doctor import report
from ptnt_mm.utils.errors import exit_status


def main(words: list[str] | None = None) -> int:
    """Look at what is installed; 1 if something is broken."""
    args = _parser().parse_args(words)
    return exit_status(lambda: _run(args))


def _parser() -> ArgumentParser:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    add_json(parser)
    return parser


def _run(args: Namespace) -> int:
    with json_output(args.json, args.overwrite) as write:
        return report.main(write)
