"""Plan, train and collect the model zoo.

Examples:
    python tools/reproduce.py plan                          # schedules, GPU hours, weights
    python tools/reproduce.py measure retinanet_ptnt_s_1x --device cuda
    python tools/reproduce.py run retinanet_ptnt_s_1x --gpus 8
    python tools/reproduce.py collect                       # docs/model_zoo.md
"""

import argparse
import shlex
import sys
from pathlib import Path

from ptnt_mm.cli.arguments import Parser, size, whole
from ptnt_mm.utils.atomic_files import written_whole
from ptnt_mm.utils.errors import exit_status
from reproduction import plan, run, steps, zoo_page
from reproduction.collect import collect
from reproduction.entries import choose, entries

ROOT = Path(__file__).resolve().parents[1]
STEP_TIMES = Path('work_dirs/step_times.json')

Commands = argparse._SubParsersAction


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = Parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    for add in (_add_plan, _add_measure, _add_run, _add_collect):
        add(commands)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    args = make_parser().parse_args(arguments)
    return exit_status(lambda: args.command(args))


def show_plan(args: argparse.Namespace) -> None:
    """Print schedules, GPU hours and weights.

    Raises:
        UserError: if a name is unknown, or the file of step times is damaged.
    """
    chosen = choose(args.names) if args.names else entries()
    print(plan.plan(chosen, steps.read(args.times)))
    if args.count:
        print('\n' + plan.cost(chosen))


def measure_steps(args: argparse.Namespace) -> None:
    """Time training steps and save the times.

    Raises:
        UserError: if a name is unknown, or the device is missing or has too little memory.
    """
    chosen = choose(args.names)
    steps.read(args.times)  # fail early if the file is damaged
    for entry in chosen:
        found = steps.measure(entry, args.device, args.size, args.steps)
        steps.add(args.times, entry, found)
        print(
            f'{entry.step}: {found.seconds:.3f} s for {found.images} images of {found.size} on '
            f'{found.device}; {entry.schedule}: {plan.gpu_hours(entry, found):.0f} hours'
        )


def run_training(args: argparse.Namespace) -> None:
    """Train the configs that are not finished, or print the commands.

    Raises:
        UserError: if a name is unknown or weights are missing, or at the first failing training.
    """
    chosen = choose(args.names)
    place = run.Place(args.work_dirs, args.weights, args.gpus)
    commands = run.unfinished(chosen, place, tell=_tell)
    if args.dry_run:
        print(*map(shlex.join, commands.values()), sep='\n')
    else:
        run.run(commands, place)


def write_zoo(args: argparse.Namespace) -> None:
    """Read the logs, print the state of each training, and write the page and the metafile.

    Raises:
        UserError: if a log cannot be read, or a file cannot be written.
    """
    rows = [collect(entry, args.work_dirs) for entry in entries()]
    for row in rows:
        if row.done:
            print(row)
    _write(args.out / 'docs' / 'model_zoo.md', zoo_page.page(rows))
    _write(args.out / 'configs' / 'metafile.yml', zoo_page.metafile(rows))


def _add_plan(commands: Commands) -> None:
    parser = commands.add_parser('plan', help='show schedules, GPU hours and weights')
    parser.add_argument('names', nargs='*', metavar='CONFIG', help='default: all')
    parser.add_argument(
        '--count', action='store_true', help='also count parameters and multiply-adds (slow)'
    )
    _add_times(parser)
    parser.set_defaults(command=show_plan)


def _add_measure(commands: Commands) -> None:
    parser = commands.add_parser('measure', help='time training steps on this device')
    parser.add_argument('names', nargs='+', metavar='CONFIG')
    parser.add_argument('--device', default='cuda', help='cpu, cuda or cuda:1')
    parser.add_argument(
        '--size', type=size, metavar='HxW',
        help="image size in pixels (default: the benchmark's, such as 800x1333 for COCO)",
    )  # fmt: skip
    parser.add_argument('--steps', type=whole, default=20, help='timed steps, after two of warm-up')
    _add_times(parser)
    parser.set_defaults(command=measure_steps)


def _add_run(commands: Commands) -> None:
    parser = commands.add_parser('run', help='train or resume configs; skip finished ones')
    parser.add_argument('names', nargs='+', metavar='CONFIG')
    parser.add_argument('--gpus', type=whole, default=1, help='number of GPUs on this machine')
    parser.add_argument(
        '--weights', type=Path, default=Path('pretrained'), metavar='FOLDER',
        help="folder of the authors' weight files (default: pretrained)",
    )  # fmt: skip
    parser.add_argument('--dry-run', action='store_true', help='print the commands and stop')
    _add_work_dirs(parser)
    parser.set_defaults(command=run_training)


def _add_collect(commands: Commands) -> None:
    parser = commands.add_parser('collect', help='write the model zoo from the logs')
    _add_work_dirs(parser)
    _add_out(parser)
    parser.set_defaults(command=write_zoo)


def _add_times(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--times', type=Path, default=STEP_TIMES, metavar='FILE',
        help=f'file of measured step times (default: {STEP_TIMES})',
    )  # fmt: skip


def _add_work_dirs(parser: argparse.ArgumentParser, default: Path = Path('work_dirs')) -> None:
    parser.add_argument(
        '--work-dirs', type=Path, default=default, metavar='FOLDER',
        help=f'folder that holds the work dirs (default: {default})',
    )  # fmt: skip


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--out', type=Path, default=ROOT, metavar='FOLDER',
        help='folder that contains docs and configs (default: the checkout)',
    )  # fmt: skip


def _write(file: Path, text: str) -> None:
    with written_whole(file) as partial:
        partial.write_text(text, encoding='utf-8')
    print(f'wrote {file}')


def _tell(text: str) -> None:
    """Print a line now, before the command that follows prints to the same terminal."""
    print(text, flush=True)


if __name__ == '__main__':
    sys.exit(main())
