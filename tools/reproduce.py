"""Plan, train and collect the model zoo; compare backbones on the demo set.

Examples:
    python tools/reproduce.py plan                          # schedules, GPU hours, weights
    python tools/reproduce.py measure retinanet_ptnt_s_1x --device cuda
    python tools/reproduce.py run retinanet_ptnt_s_1x --gpus 8
    python tools/reproduce.py collect                       # docs/model_zoo.md
    python tools/reproduce.py compare                       # docs/comparison.md
"""

import argparse
import json
import shlex
import sys
from pathlib import Path

from ptnt_mm.arguments import Parser, size, whole
from ptnt_mm.errors import exit_status
from ptnt_mm.files import written_whole
from ptnt_mm.reproduce import plan, run, steps, zoo_page
from ptnt_mm.reproduce.collect import collect
from ptnt_mm.reproduce.comparison import SEEDS, outcomes, run_missing
from ptnt_mm.reproduce.comparison_report import check_page, compare, update_page
from ptnt_mm.reproduce.entries import choose, entries
from ptnt_mm.visualization.comparison import draw_comparison

ROOT = Path(__file__).resolve().parents[1]
STEP_TIMES = Path('work_dirs/step_times.json')

Commands = argparse._SubParsersAction


def make_parser() -> argparse.ArgumentParser:
    """The arguments."""
    parser = Parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    for add in (_add_plan, _add_measure, _add_run, _add_collect, _add_compare):
        add(commands)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    args = make_parser().parse_args(arguments)
    return exit_status(lambda: args.command(args))


def show_plan(args: argparse.Namespace) -> None:
    """Print what training takes.

    Raises:
        UserError: for an unknown name, or a damaged file of step times.
    """
    chosen = choose(args.names) if args.names else entries()
    print(plan.plan(chosen, steps.read(args.times)))
    if args.count:
        print('\n' + plan.cost(chosen))


def measure_steps(args: argparse.Namespace) -> None:
    """Time training steps and keep the times.

    Raises:
        UserError: for an unknown name, or a device that is not there or too small.
    """
    chosen = choose(args.names)
    steps.read(args.times)  # a damaged file is found before the work
    for entry in chosen:
        found = steps.measure(entry, args.device, args.size, args.steps)
        steps.add(args.times, entry, found)
        print(
            f'{entry.step}: {found.seconds:.3f} s for {found.images} images of {found.size} on '
            f'{found.device}; {entry.schedule}: {plan.gpu_hours(entry, found):.0f} hours'
        )


def run_training(args: argparse.Namespace) -> None:
    """Train what is not finished, or print the commands.

    Raises:
        UserError: for an unknown name, missing weights, or at the first training that fails.
    """
    chosen = choose(args.names)
    place = run.Place(args.work_dirs, args.weights, args.gpus)
    commands = run.unfinished(chosen, place, tell=_tell)
    if args.dry_run:
        print(*map(shlex.join, commands.values()), sep='\n')
    else:
        run.run(commands, place)


def write_zoo(args: argparse.Namespace) -> None:
    """Read the logs, say how far each training came, and write page and metafile.

    Raises:
        UserError: for a log that cannot be read, or a file that cannot be written.
    """
    rows = [collect(entry, args.work_dirs) for entry in entries()]
    for row in rows:
        if row.done:
            print(row)
    _write(args.out / 'docs' / 'model_zoo.md', zoo_page.page(rows))
    _write(args.out / 'configs' / 'metafile.yml', zoo_page.metafile(rows))


def compare_backbones(args: argparse.Namespace) -> None:
    """Run what is missing, then write the table, the figure and the numbers of all that is there.

    Raises:
        UserError: at the first run that fails, or for a page without a place for the table.
    """
    page = args.out / 'docs' / 'comparison.md'
    check_page(page)
    if args.seeds:
        run_missing(args.seeds, args.work_dirs, args.jobs, args.threads, tell=_tell)
    found = compare(outcomes(args.work_dirs))
    update_page(page, found)
    print(f'wrote {page}')
    numbers = args.out / 'docs' / 'benchmarks' / 'comparison.json'
    _write(numbers, json.dumps(found.to_dict(), indent=1) + '\n')
    figure = draw_comparison(found.outcomes, args.out / 'docs' / 'images' / 'comparison.png')
    print(f'wrote {figure}')


def _add_plan(commands: Commands) -> None:
    parser = commands.add_parser('plan', help='what training takes')
    parser.add_argument('names', nargs='*', metavar='CONFIG', help='all by default')
    parser.add_argument(
        '--count', action='store_true', help='count parameters and multiply-adds, too: slow'
    )
    _add_times(parser)
    parser.set_defaults(command=show_plan)


def _add_measure(commands: Commands) -> None:
    parser = commands.add_parser('measure', help='time training steps on this device')
    parser.add_argument('names', nargs='+', metavar='CONFIG')
    parser.add_argument('--device', default='cuda', help='cpu, cuda or cuda:1')
    parser.add_argument(
        '--size', type=size, metavar='HxW',
        help="of the images, in pixels: the benchmark's own by default, such as 800x1333 for COCO",
    )  # fmt: skip
    parser.add_argument('--steps', type=whole, default=20, help='after two for warming up')
    _add_times(parser)
    parser.set_defaults(command=measure_steps)


def _add_run(commands: Commands) -> None:
    parser = commands.add_parser('run', help='train, or go on with it; what is finished is left')
    parser.add_argument('names', nargs='+', metavar='CONFIG')
    parser.add_argument('--gpus', type=whole, default=1, help='of this machine')
    parser.add_argument(
        '--weights', type=Path, default=Path('pretrained'), metavar='FOLDER',
        help="of the authors' files: pretrained by default",
    )  # fmt: skip
    parser.add_argument('--dry-run', action='store_true', help='print the commands and stop')
    _add_work_dirs(parser)
    parser.set_defaults(command=run_training)


def _add_collect(commands: Commands) -> None:
    parser = commands.add_parser('collect', help='write the model zoo out of the logs')
    _add_work_dirs(parser)
    _add_out(parser)
    parser.set_defaults(command=write_zoo)


def _add_compare(commands: Commands) -> None:
    parser = commands.add_parser('compare', help='train small detectors on the demo set')
    parser.add_argument(
        '--seeds', nargs='*', type=int, default=list(SEEDS), help='none: report what is there'
    )
    parser.add_argument('--jobs', type=whole, default=2, help='runs at a time')
    parser.add_argument('--threads', type=whole, default=1, help='of each run')
    _add_work_dirs(parser, Path('work_dirs/comparison'))
    _add_out(parser)
    parser.set_defaults(command=compare_backbones)


def _add_times(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--times', type=Path, default=STEP_TIMES, metavar='FILE',
        help=f'what was measured: {STEP_TIMES} by default',
    )  # fmt: skip


def _add_work_dirs(parser: argparse.ArgumentParser, default: Path = Path('work_dirs')) -> None:
    parser.add_argument(
        '--work-dirs', type=Path, default=default, metavar='FOLDER',
        help=f"of the runs' folders: {default} by default",
    )  # fmt: skip


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--out', type=Path, default=ROOT, metavar='FOLDER',
        help='with docs and configs in it: the checkout by default',
    )  # fmt: skip


def _write(file: Path, text: str) -> None:
    with written_whole(file) as partial:
        partial.write_text(text, encoding='utf-8')
    print(f'wrote {file}')


def _tell(text: str) -> None:
    """Progress; flushed, since what is started writes to the same terminal."""
    print(text, flush=True)


if __name__ == '__main__':
    sys.exit(main())
