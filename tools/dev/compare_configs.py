"""Train configs on the CPU with several seeds each, and print a table of the results.

    python tools/dev/compare_configs.py mine.py other.py --seeds 0 1 2

All configs run with one seed before any runs with the next, so that other work on the machine
affects all of them equally. Finished runs are kept, interrupted ones start over.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmark.machine import describe_machine
from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.tables import markdown
from ptnt_mm.workbench.cli.start import Parser
from ptnt_mm.workbench.cli.values import positive
from ptnt_mm.workbench.engine.scalar_logs import last_evaluation, metrics_in_percent

METRICS = {
    'box AP': 'coco/bbox_mAP',
    'AP small': 'coco/bbox_mAP_s',
    'AP medium': 'coco/bbox_mAP_m',
    'AP large': 'coco/bbox_mAP_l',
    'mask AP': 'coco/segm_mAP',
    'mIoU': 'mIoU',
}
"""Keys in the hosts' logs, by the columns of the table."""

TRAIN = Path(__file__).parents[1] / 'train.py'


@dataclass(frozen=True)
class Outcome:
    """A finished run: its last evaluation, and its seconds of wall time, evaluations included."""

    config: str
    seed: int
    figures: dict[str, float]  # in percent, by the names in the table
    seconds: float
    machine: dict[str, Any]


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('configs', nargs='+', type=Path, metavar='CONFIG', help='config files')
    parser.add_argument('--seeds', nargs='+', type=int, default=[0, 1, 2], help='random seeds')
    parser.add_argument('--jobs', type=positive, default=2, help='parallel runs')
    parser.add_argument('--threads', type=positive, default=1, help='threads of each run')
    parser.add_argument(
        '--work-dirs', type=Path, default=Path('work_dirs/comparison'), metavar='FOLDER',
        help='folder of the runs (default: work_dirs/comparison)',
    )  # fmt: skip
    return parser.run(compare_configs, words)


def compare_configs(args: argparse.Namespace) -> None:
    """Train the missing runs, then print the table.

    Raises:
        UserError: at the first run that fails, with the path of its output.
    """
    runs = [(config, seed) for seed in args.seeds for config in args.configs]
    pool = ThreadPoolExecutor(args.jobs)
    try:
        outcomes = list(pool.map(lambda run: _outcome(*run, args.work_dirs, args.threads), runs))
    finally:
        pool.shutdown(cancel_futures=True)
    print(to_markdown(outcomes))


def _outcome(config: Path, seed: int, work_dirs: Path, threads: int) -> Outcome:
    """The outcome of a run, which is trained if there is none yet."""
    folder = work_dirs / config.stem / f'seed_{seed}'
    file, console = folder / 'outcome.json', folder / 'console.txt'
    if file.is_file():
        return Outcome(**json.loads(file.read_text(encoding='utf-8')))
    folder.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        'CUDA_VISIBLE_DEVICES': '',
        'OMP_NUM_THREADS': str(threads),
        # With busy waiting, threads become very slow when two runs share the cores.
        'OMP_WAIT_POLICY': 'passive',
    }
    command = [sys.executable, str(TRAIN), str(config), '--work-dir', str(folder)]
    command += ['--seed', str(seed), '--overwrite']
    start = time.perf_counter()
    with console.open('w', encoding='utf-8') as stream:
        status = subprocess.call(command, env=environment, stdout=stream, stderr=subprocess.STDOUT)
    seconds = round(time.perf_counter() - start, 1)
    figures = metrics_in_percent(last_evaluation(folder) or {}, METRICS)
    if status or not figures:
        what = f'stopped with exit status {status}' if status else 'logged no metrics'
        raise UserError(f'{config.stem}, seed {seed}, {what}: its output is in {console}')
    outcome = Outcome(config.stem, seed, figures, seconds, describe_machine('cpu', threads))
    write_atomically(file, json.dumps(asdict(outcome), indent=1) + '\n')
    print(f'{config.stem}, seed {seed}: {seconds:.0f} s', file=sys.stderr, flush=True)
    return outcome


def to_markdown(outcomes: list[Outcome]) -> str:
    """Return a table with the mean and every seed of each config, below the machines used."""
    metrics = [name for name in METRICS if any(name in run.figures for run in outcomes)]
    rows = []
    for config in dict.fromkeys(run.config for run in outcomes):
        runs = [run for run in outcomes if run.config == config]
        figures = ([run.figures[name] for run in runs if name in run.figures] for name in metrics)
        seeds = ', '.join(str(run.seed) for run in runs)
        seconds = ', '.join(f'{run.seconds:.0f}' for run in runs)
        rows.append([config, seeds, *map(_mean_and_each, figures), seconds])
    machines = dict.fromkeys(
        ', '.join(f'{key} {value}' for key, value in run.machine.items()) for run in outcomes
    )
    table = markdown(['config', 'seeds', *metrics, 'seconds of a run'], rows)
    return '\n\n'.join([*machines, table])


def _mean_and_each(values: list[float]) -> str:
    each = ', '.join(f'{value:.1f}' for value in values)
    return f'**{statistics.mean(values):.1f}** ({each})' if values else ''


if __name__ == '__main__':
    sys.exit(main())
