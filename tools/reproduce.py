"""Print the command that trains each config of the model zoo, and collect the results.

Examples:
    python tools/reproduce.py commands retinanet_ptnt_s_1x --gpus 8
    python tools/reproduce.py flags retinanet_ptnt_s_1x --gpus 16      # on two machines
    python tools/reproduce.py experiments                   # those of docs/research/experiments.md
    python tools/reproduce.py try inner_heads               # those with this word, for a moment
    python tools/reproduce.py collect                       # docs/research/model_zoo.md
"""

import argparse
import json
import shlex
import sys
from pathlib import Path

PTNT_MM_REGISTERS_LATER = __name__ == '__main__'  # help does not wait for torch

from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.workbench.cli.loading import importing
from ptnt_mm.workbench.cli.start import Parser
from ptnt_mm.workbench.cli.values import positive

ROOT = Path(__file__).resolve().parents[1]


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    subparsers = parser.add_subparsers(required=True, metavar='COMMAND')
    commands = subparsers.add_parser('commands', help='print the commands that train configs')
    commands.set_defaults(command=print_commands)
    commands.add_argument('names', nargs='*', metavar='CONFIG', help='default: all')
    commands.add_argument('--gpus', type=positive, default=1, help='number of GPUs on this machine')
    flags = subparsers.add_parser('flags', help='print the flags of ptnt train, one per line')
    flags.set_defaults(command=print_flags)
    flags.add_argument('name', metavar='CONFIG')
    flags.add_argument('--gpus', type=positive, default=1, help='number of GPUs on all machines')
    for subparser in (commands, flags):
        _add_folder(subparser, '--weights', 'pretrained', "the authors' weight files")
    experiments = subparsers.add_parser(
        'experiments', help="print the commands of the papers' experiments"
    )
    experiments.set_defaults(command=print_experiments)
    trial = subparsers.add_parser(
        'try', help='train the experiments for two iterations on the demo set (ptnt demo; '
        'python tools/make_demo_crops.py)'
    )  # fmt: skip
    trial.set_defaults(command=try_rows)
    trial.add_argument(
        'words', nargs='*', metavar='WORD', help='only those whose command has one of the words'
    )
    _add_folder(trial, '--work-dirs', 'work_dirs/experiments', 'the runs')
    collect = subparsers.add_parser('collect', help='write the model zoo from the logs')
    collect.set_defaults(command=write_zoo)
    _add_folder(collect, '--work-dirs', 'work_dirs', 'the work dirs, named after their configs')
    _add_folder(collect, '--out', ROOT, 'docs and configs')
    return parser.run(lambda args: args.command(args), words)


def _add_folder(parser: argparse.ArgumentParser, flag: str, default: str, content: str) -> None:
    text = f'folder of {content} (default: {default})'
    parser.add_argument(flag, type=Path, default=Path(default), metavar='PATH', help=text)


def print_commands(args: argparse.Namespace) -> None:
    """Print the command for each config."""
    from reproduction.entries import find_entries
    from reproduction.runs import recipe_command

    for entry in find_entries(args.names):
        print(shlex.join(recipe_command(entry, args.weights, args.gpus)))


def print_experiments(args: argparse.Namespace) -> None:
    """Print the commands of the rows of the papers' tables, each once."""
    from reproduction.experiments import commands, read_tables

    lines = (shlex.join(words) for _, words in commands(read_tables()))
    print(*dict.fromkeys(lines), sep='\n')


def try_rows(args: argparse.Namespace) -> None:
    """Train rows of the papers' tables for two iterations; print whether each works."""
    with importing():
        from ptnt_mm.utils.errors import UserError
        from reproduction.trial import try_experiments

    failed = 0
    for row, why in try_experiments(args.words, args.work_dirs):
        print(f'{row}: {f"failed: {why}" if why else "works"}', flush=True)
        failed += bool(why)
    if failed:
        raise UserError(f'{failed} experiments failed')


def print_flags(args: argparse.Namespace) -> None:
    """Print the flags that train a config, if its weights are there."""
    from reproduction.entries import find_entries
    from reproduction.runs import recipe_flags, require_weights

    (entry,) = find_entries([args.name])
    require_weights(entry, args.weights)
    print(*recipe_flags(entry, args.weights, args.gpus), sep='\n')


def write_zoo(args: argparse.Namespace) -> None:
    """Print the state of each run, and write the pages and the metafile.

    The results are those of the last checkpoint (`ptnt test`), and not those in the training log.
    """
    with importing():
        from ptnt_mm.workbench.engine.scalar_logs import last_evaluation, metrics_in_percent
        from reproduction import runs
        from reproduction.entries import list_entries
        from reproduction.experiments import experiments_page, read_tables
        from reproduction.zoo_page import metafile, zoo_page

    entries, measured, costs = list_entries(), {}, {}
    for entry in entries:
        work_dir = args.work_dirs / entry.name
        evaluation = last_evaluation(work_dir)
        if evaluation is None:
            continue
        figures = metrics_in_percent(evaluation, entry.metrics)
        values = ', '.join(f'{name} {value:.1f}' for name, value in figures.items())
        print(f'{entry.name}: {entry.unit} {evaluation["step"]} of {entry.length}, {values}')
        if evaluation['step'] < entry.length:
            continue
        if tested := _last_test(work_dir / 'test'):
            measured[entry.name] = metrics_in_percent(tested, entry.metrics)
            costs[entry.name] = runs.cost(entry)
        else:
            test = ['ptnt', 'test', entry.name, 'CHECKPOINT', '--work-dir', work_dir / 'test']
            print(f'  not on the page yet: {shlex.join(map(str, test))}')
    files = {'docs/research/model_zoo.md': zoo_page(entries, measured, costs)}
    files['docs/research/experiments.md'] = experiments_page(read_tables())
    files['configs/metafile.yml'] = metafile(entries)
    for name, text in files.items():
        write_atomically(args.out / name, text)
        print(f'wrote {args.out / name}')


def _last_test(work_dir: Path) -> dict | None:
    """The results of the last `ptnt test` with this work dir; None before the first."""
    # Each is in a folder of its time, and has the name of the folder. Other files are boxes.
    files = sorted(file for file in work_dir.glob('*/*.json') if file.stem == file.parent.name)
    return json.loads(files[-1].read_text(encoding='utf-8')) if files else None


if __name__ == '__main__':
    sys.exit(main())
