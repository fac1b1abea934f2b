"""``ptnt report``: write one page about training runs, or about data."""

from argparse import Namespace
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import from_here
from ptnt_mm.workbench.cli.arguments import Argument, Command, Option, Switch
from ptnt_mm.workbench.cli.loading import importing
from ptnt_mm.workbench.config.zoo import find_config

# fmt: off
COMMAND = Command(
    'report',
    'write one page about training runs, or about data',
    """Write one page about training runs: curves, scores, errors and the worst images.

With --data, the page is about the data of a project or a config: its images as the network gets
them, problems, copies in two splits, classes and sizes.

Examples:
    ptnt report work_dirs/demo
    ptnt report work_dirs/demo work_dirs/demo_masks --out compared.html
    ptnt report --data bccd
""",
    words=(
        Argument('work_dirs', 'the work dir of a training run, or a project', Path,
                 metavar='WORK_DIR', nargs='*'),
        Option('data', 'write the page about the data of this project or config instead',
               metavar='CONFIG'),
    ),
    keywords=(
        Option('out', 'the page; by default WORK_DIR/report.html or PROJECT/data.html, where '
               'an earlier page is replaced', Path, metavar='FILE.html'),
        Switch('overwrite', 'replace the file of `out` if it exists'),
    ),
    order=9,
    runs_hooks=True,
)
# fmt: on


_PAGES = ('report.html', 'data.html')  # where they are by default, pages are replaced


def check_arguments(args: Namespace) -> None:
    """Refuse runs beside data, and a page that exists."""
    from ptnt_mm.utils.atomic_files import check_new

    if bool(args.work_dirs) == bool(args.data):
        raise UserError('expected the work dirs of runs, or --data with a project or a config')
    if args.data is not None:
        find_config(args.data)
    if args.out is not None and args.out.name not in _PAGES:
        check_new(args.out, args.overwrite)


def run(args: Namespace) -> None:
    """Write a page about runs, or about the data of a config."""
    with importing():
        from ptnt_mm.workbench.config.read import read_config
        from ptnt_mm.workbench.pages.data.report_data import report_data
        from ptnt_mm.workbench.pages.report.report import report

    if args.data:
        page = report_data(read_config(args.data), **COMMAND.given(args))
        print(f'Done. Page: {from_here(page)}')
        return
    print(f'Done. Page: {report(args.work_dirs, **COMMAND.given(args))}')
