"""``ptnt check``: find problems in a config and its data."""

from argparse import Namespace
from dataclasses import asdict

from ptnt_mm.utils.findings import Finding, Severity, closing, lines, of_kind, summary
from ptnt_mm.workbench.cli.arguments import Command, Option, Switch
from ptnt_mm.workbench.cli.json_output import json_output
from ptnt_mm.workbench.cli.loading import importing
from ptnt_mm.workbench.cli.shared import DATA_ROOT, JSON, config_of, config_words
from ptnt_mm.workbench.cli.values import positive

# fmt: off
COMMAND = Command(
    'check',
    'find problems in a config and its data',
    """Find faults in a config and its data that would stop a run or silently spoil its result.

ptnt check my_configs/custom_coco.py --gpus 8 --pretrained ptnt_s_82.0.pth.tar
""",
    words=(
        *config_words(),
        DATA_ROOT,
        Switch('verbose', 'also show what was checked and is right', flags=('-v', '--verbose')),
        *JSON,
    ),
    keywords=(
        Option('pretrained', 'weights of the backbone: a file, or a name from ptnt weights',
               metavar='WEIGHTS'),
        Option('gpus', 'number of GPUs for training: 1 by default', positive, 1, 'N'),
        Switch('thorough', 'do not open weights; open only the images for a training step and an '
               'evaluation', default=True, flags=('--quick',)),
    ),
    order=7,
)
# fmt: on


def run(args: Namespace) -> int:
    """Check a config, and print the findings; return 1 if there are errors."""
    from ptnt_mm.utils.console import for_user, show
    from ptnt_mm.utils.terminal import show_wrapped

    with importing():
        from ptnt_mm.workbench.check.inspection import check

    by_subject: dict[str, list[Finding]] = {}

    def on_findings(subject: str, findings: list[Finding]) -> None:
        by_subject.setdefault(subject, []).extend(findings)
        if args.verbose:
            show_wrapped('\n'.join((subject, *lines(findings))))

    with json_output(args.json) as write:
        config = config_of(args)
        try:
            found = check(config, **COMMAND.given(args), on_findings=on_findings)
        finally:  # also after Ctrl-C
            if by_subject and not args.verbose:
                show_wrapped('\n'.join(summary(by_subject)))
        show(closing(found))
        write([{key: for_user(text) for key, text in asdict(finding).items()} for finding in found])
    return int(bool(of_kind(found, Severity.ERROR)))
