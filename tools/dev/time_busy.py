"""Time a backbone beside other programs, with threads that spin as by default and as ``ptnt`` sets.

Prints one row for each number of busy processes: seconds of a forward pass and of a training step
(forward and backward) with torch's default, and with GOMP_SPINCOUNT=1000. Both processes live from
the beginning, and take turns in every round.

Examples:
    python tools/dev/time_busy.py    # 10 minutes: the table of docs/research/performance.md
    python tools/dev/time_busy.py --models ptnt_s --busy 0 1 --rounds 3
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import torch

from benchmark.contenders import BUILDERS, check_name
from benchmark.run import check_machine
from benchmark.timing import FORWARD, TRAINING, Setting, prepare_run, size
from ptnt_mm.workbench.cli.start import Parser
from ptnt_mm.workbench.cli.values import not_negative, positive

WAITS = {'default': {}, 'GOMP_SPINCOUNT=1000': {'GOMP_SPINCOUNT': '1000'}}
"""What is compared: variables of the environment."""


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('--models', nargs='+', default=['ptnt_s', 'swin_t'], metavar='NAME',
                        help=', '.join(BUILDERS))  # fmt: skip
    parser.add_argument('--size', type=size, default=(480, 800), metavar='HxW', help='in pixels')
    parser.add_argument('--busy', nargs='+', type=not_negative, default=[0, 1, 3], metavar='N',
                        help='numbers of processes that compute without a pause')  # fmt: skip
    parser.add_argument('--threads', type=positive, default=2, help='CPU threads')
    parser.add_argument('--rounds', type=positive, default=5, help='timed rounds')
    parser.add_argument('--serve', nargs=2, metavar=('MODEL', 'MODE'), help=argparse.SUPPRESS)
    return parser.run(lambda args: serve(args) if args.serve else compare(args), words)


def compare(args: argparse.Namespace) -> None:
    """Time all models and print the table."""
    for name in args.models:
        check_name(name)
    check_machine('cpu')
    print('| model | pass | busy processes |', *(f'{name}, s |' for name in WAITS), 'ratio |')
    print('|---|---|---|' + '---|' * (len(WAITS) + 1))
    for model in args.models:
        for mode in (FORWARD, TRAINING):
            with servers(args, model, mode) as started:
                for number in args.busy:
                    row = measure(started, number, args.rounds)
                    cells = (model, mode, number, *(f'{s:.2f}' for s in row))
                    print('|', *(f'{cell} |' for cell in cells), f'{row[1] / row[0]:.2f} |')


def measure(started: list[subprocess.Popen], busy: int, rounds: int) -> list[float]:
    """The median seconds of each server beside a number of busy processes."""
    others = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(busy)]
    try:
        found = [[ask(server) for server in started] for _ in range(rounds)]
    finally:
        for other in others:
            other.kill()
            other.wait()
    return [median(seconds) for seconds in zip(*found, strict=True)]


@contextmanager
def servers(args: argparse.Namespace, model: str, mode: str) -> Iterator[list[subprocess.Popen]]:
    """A process for each way to wait, which runs the model whenever it is asked."""
    command = [sys.executable, __file__, '--threads', str(args.threads)]
    command += ['--size', 'x'.join(map(str, args.size)), '--serve', model, mode]
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, env=cleared() | variables, text=True)
        for variables in WAITS.values()
    ]
    try:
        for server in started:
            server.stdout.readline()  # it is ready
        yield started
    finally:
        for server in started:
            server.kill()
            server.wait()


def ask(server: subprocess.Popen) -> float:
    """Let a server run once; return its seconds."""
    server.stdin.write('\n')
    server.stdin.flush()
    return float(server.stdout.readline())


def serve(args: argparse.Namespace) -> None:
    """Run a model once for each line of standard input, and print its seconds."""
    torch.set_num_threads(args.threads)
    model, mode = args.serve
    run = prepare_run(model, Setting(mode, args.size))
    print('ready', flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        run()
        print(time.perf_counter() - start, flush=True)


def cleared() -> dict[str, str]:
    """This environment without variables of OpenMP, and with the package of this checkout."""
    root = str(Path(__file__).resolve().parents[2])
    kept = {name: value for name, value in os.environ.items() if 'OMP_' not in name}
    return kept | {'PYTHONPATH': root}


if __name__ == '__main__':
    sys.exit(main())
