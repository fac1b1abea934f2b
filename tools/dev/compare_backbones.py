"""Train small detectors with several backbones on the demo set, and write docs/comparison.md.

Examples:
    python tools/dev/compare_backbones.py
    python tools/dev/compare_backbones.py --seeds      # report existing runs, train nothing
"""

import argparse
import json
import sys
from pathlib import Path

from comparison.figure import draw_comparison
from comparison.report import check_page, compare, update_page
from comparison.runs import SEEDS, outcomes, run_missing
from ptnt_mm.cli.arguments import whole
from ptnt_mm.utils.atomic_files import written_whole
from ptnt_mm.utils.errors import exit_status

ROOT = Path(__file__).resolve().parents[2]


def parse_args(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        '--seeds', nargs='*', type=int, default=list(SEEDS),
        help='random seeds; without a number, only report existing runs',
    )  # fmt: skip
    parser.add_argument('--jobs', type=whole, default=2, help='parallel runs')
    parser.add_argument('--threads', type=whole, default=1, help='threads per run')
    parser.add_argument(
        '--work-dirs', type=Path, default=Path('work_dirs/comparison'), metavar='FOLDER',
        help='folder that holds the runs (default: work_dirs/comparison)',
    )  # fmt: skip
    parser.add_argument(
        '--out', type=Path, default=ROOT, metavar='FOLDER',
        help='folder that contains docs (default: the checkout)',
    )  # fmt: skip
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    args = parse_args(arguments)
    return exit_status(lambda: compare_backbones(args))


def compare_backbones(args: argparse.Namespace) -> None:
    """Train the missing runs, then write table, figure and numbers of all finished runs.

    Raises:
        UserError: at the first run that fails, or if the page lacks the table's markers.
    """
    page = args.out / 'docs' / 'comparison.md'
    check_page(page)
    if args.seeds:
        run_missing(args.seeds, args.work_dirs, args.jobs, args.threads, tell=_tell)
    found = compare(outcomes(args.work_dirs))
    update_page(page, found)
    print(f'wrote {page}')
    numbers = args.out / 'docs' / 'benchmarks' / 'comparison.json'
    with written_whole(numbers) as partial:
        partial.write_text(json.dumps(found.to_dict(), indent=1) + '\n', encoding='utf-8')
    print(f'wrote {numbers}')
    figure = draw_comparison(found.outcomes, args.out / 'docs' / 'images' / 'comparison.png')
    print(f'wrote {figure}')


def _tell(text: str) -> None:
    """Print a progress line without delay."""
    print(text, flush=True)


if __name__ == '__main__':
    sys.exit(main())
