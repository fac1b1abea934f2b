"""Find faults in a config and its data that would stop a run or silently spoil its result.

ptnt check my_configs/custom_coco.py --gpus 8 --pretrained ptnt_s_82.0.pth.tar
"""

import argparse
from dataclasses import asdict

from ptnt_mm.cli.arguments import Parser, add_config, config_of, positive
from ptnt_mm.cli.importing import importing
from ptnt_mm.cli.json_output import add_json, json_output
from ptnt_mm.utils.console import show
from ptnt_mm.utils.findings import Finding, Severity, closing, lines, of_kind, summary
from ptnt_mm.utils.terminal import say


def main(words: list[str] | None = None) -> int:
    """Check a config, and print the findings; return 1 if there are errors."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    add_config(parser)
    parser.add_argument(
        '--pretrained',
        metavar='WEIGHTS',
        help='weights of the backbone: a file, or a name from ptnt weights',
    )
    parser.add_argument(
        '--gpus',
        type=positive,
        default=1,
        metavar='N',
        help='number of GPUs for training: 1 by default',
    )
    parser.add_argument(
        '--quick',
        action='store_true',
        help='do not open weights; open only the images for a training step and an evaluation',
    )
    parser.add_argument(
        '-v', '--verbose', action='store_true', help='also show what was checked and is right'
    )
    add_json(parser)
    return parser


def _run(args: argparse.Namespace) -> int:
    with importing():
        from ptnt_mm.api import check

    by_subject: dict[str, list[Finding]] = {}

    def on_findings(subject: str, findings: list[Finding]) -> None:
        by_subject.setdefault(subject, []).extend(findings)
        if args.verbose:
            say('\n'.join((subject, *lines(findings))), column=11)

    with json_output(args.json, args.overwrite) as write:
        config = config_of(args)
        try:
            found = check(
                config,
                gpus=args.gpus,
                thorough=not args.quick,
                on_findings=on_findings,
                pretrained=args.pretrained,
            )
        finally:  # also after Ctrl-C
            if by_subject and not args.verbose:
                say('\n'.join(summary(by_subject)), column=11)
        show(closing(found))
        write([asdict(finding) for finding in found])
    return int(bool(of_kind(found, Severity.ERROR)))
