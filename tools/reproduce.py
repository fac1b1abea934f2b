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
from ptnt_mm.utils.atomic_files import write_whole
from reproduction.entries import find_entries, list_entries
from reproduction.plan import cost_table, gpu_hours, plan_table
from reproduction.progress import read_progress
from reproduction.step_times import add_step_time, measure_step, read_step_times
from reproduction.trainings import recipe_command, run_trainings
from reproduction.zoo_page import metafile, zoo_page

ROOT = Path(__file__).resolve().parents[1]


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar='COMMAND')

    plan = commands.add_parser('plan', help='show schedules, GPU hours and weights')
    plan.set_defaults(command=show_plan)
    plan.add_argument('names', nargs='*', metavar='CONFIG', help='default: all')
    plan.add_argument(
        '--count', action='store_true', help='also count parameters and multiply-adds (slow)'
    )

    measure = commands.add_parser('measure', help='time training steps on this device')
    measure.set_defaults(command=measure_steps)
    measure.add_argument('names', nargs='+', metavar='CONFIG')
    measure.add_argument('--device', default='cuda', help='cpu, cuda or cuda:1')
    measure.add_argument(
        '--size', type=size, metavar='HxW',
        help="image size in pixels (default: the benchmark's, such as 800x1333 for COCO)",
    )  # fmt: skip
    measure.add_argument(
        '--steps', type=whole, default=20, help='timed steps, after two of warm-up'
    )

    run = commands.add_parser('run', help='train or resume configs; skip finished ones')
    run.set_defaults(command=run_unfinished)
    run.add_argument('names', nargs='+', metavar='CONFIG')
    run.add_argument('--gpus', type=whole, default=1, help='number of GPUs on this machine')
    run.add_argument('--dry-run', action='store_true', help='print the commands and stop')
    _add_path(run, '--weights', 'pretrained', "folder of the authors' weight files")

    collect = commands.add_parser('collect', help='write the model zoo from the logs')
    collect.set_defaults(command=write_zoo)
    _add_path(collect, '--out', ROOT, 'folder that contains docs and configs')

    for command in (plan, measure):
        _add_path(command, '--times', 'work_dirs/step_times.json', 'file of measured step times')
    for command in (run, collect):
        _add_path(command, '--work-dirs', 'work_dirs', 'folder that holds the work dirs')
    return parser.run(lambda args: args.command(args), words)


def _add_path(parser: argparse.ArgumentParser, flag: str, default: str | Path, what: str) -> None:
    parser.add_argument(
        flag, type=Path, default=Path(default), metavar='PATH', help=f'{what} (default: {default})'
    )


def show_plan(args: argparse.Namespace) -> None:
    """Print schedules, GPU hours and weights."""
    chosen = find_entries(args.names) if args.names else list_entries()
    print(plan_table(chosen, read_step_times(args.times)))
    if args.count:
        print('\n' + cost_table(chosen))


def measure_steps(args: argparse.Namespace) -> None:
    """Time training steps and save the times."""
    chosen = find_entries(args.names)
    read_step_times(args.times)  # fail early if the file is damaged
    for entry in chosen:
        found = measure_step(entry, args.device, args.size, args.steps)
        add_step_time(args.times, entry, found)
        print(
            f'{entry.step}: {found.seconds:.3f} s for {found.images} images of {found.size} on '
            f'{found.device}; {entry.schedule}: {gpu_hours(entry, found):.0f} hours'
        )


def run_unfinished(args: argparse.Namespace) -> None:
    """Train the configs that are not finished, or print the commands."""
    commands = {}
    for entry in find_entries(args.names):
        progress = read_progress(entry, args.work_dirs)
        # Now, before a training prints to the same terminal.
        print(f'# {progress}', flush=True)
        if not progress.finished:
            work_dir = args.work_dirs / entry.name
            commands[work_dir] = recipe_command(entry, work_dir, args.weights, args.gpus)
    if args.dry_run:
        print(*map(shlex.join, commands.values()), sep='\n')
    else:
        run_trainings(commands)


def write_zoo(args: argparse.Namespace) -> None:
    """Read the logs, print the state of each training, and write the page and the metafile."""
    rows = [read_progress(entry, args.work_dirs) for entry in list_entries()]
    for row in rows:
        if row.done:
            print(row)
    files = {'docs/model_zoo.md': zoo_page(rows), 'configs/metafile.yml': metafile(rows)}
    for name, text in files.items():
        write_whole(args.out / name, text)
        print(f'wrote {args.out / name}')


if __name__ == '__main__':
    sys.exit(main())
