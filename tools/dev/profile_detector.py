"""Where a detector's training step takes its time, in five lines, and its slowest operators.

    python tools/dev/profile_detector.py mask_rcnn_ptnt_s --device cuda --batch 2

Parts are timed with the device idle before and after each, so their sum is more than a step takes.
"""

import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable

import torch
from torch.profiler import profile
from torch.utils._python_dispatch import TorchDispatchMode

from benchmark.contenders import build_contender
from benchmark.detectors import CONFIGS, losses_of
from benchmark.run import check_machine
from benchmark.timing import size
from ptnt_mm.utils.tables import new_table, to_text
from ptnt_mm.workbench.cli.start import Parser
from ptnt_mm.workbench.cli.values import positive

WARM_UP = 2


class _Operators(TorchDispatchMode):
    """Count operators, views included."""

    number = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.number += 1
        return operator(*args, **(kwargs or {}))


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('models', nargs='+', choices=CONFIGS)
    parser.add_argument('--size', type=size, default=(800, 1344), metavar='HxW', help='in pixels')
    parser.add_argument('--batch', type=positive, default=2, metavar='B')
    parser.add_argument('--steps', type=positive, default=5, metavar='N', help='timed, after two')
    parser.add_argument('--device', default='cpu', help='cpu, cuda or cuda:1')
    return parser.run(print_profiles, words)


def print_profiles(args: Namespace) -> None:
    """Print both tables of each model."""
    check_machine(args.device)
    for name in args.models:
        step = _step(name, args)
        seconds, operators = Counter(), Counter()
        for number in range(WARM_UP + args.steps):
            if number == WARM_UP:
                seconds.clear()
            step(_timed(seconds, args.device))
        step(_counted(operators))
        with profile() as profiler:
            step(lambda part, run: run())
        table = new_table(f'{name}, batch {args.batch}', 'ms', 'share', 'operators')
        for part, value in seconds.items():
            share = value / seconds.total()
            cells = (f'{1000 * value / args.steps:.1f}', f'{share:.0%}', str(operators[part]))
            table.add_row(part, *cells)
        by = 'self_cpu_time_total' if args.device == 'cpu' else 'self_device_time_total'
        slowest = profiler.key_averages().table(sort_by=by, row_limit=10, max_name_column_width=40)
        print(to_text(table), slowest, sep='\n\n')


def _step(name: str, args: Namespace) -> Callable[[Callable], None]:
    """A training step in bfloat16, which hands each part to a function."""
    model = build_contender(name).to(args.device).train()
    detector, device = model.detector, torch.device(args.device).type
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    image = torch.randn(args.batch, 3, *args.size, device=args.device)
    samples = model.samples_of(image)
    is_two_stage = hasattr(detector, 'rpn_head')

    def step(run: Callable) -> None:
        with torch.autocast(device, dtype=torch.bfloat16):
            maps = run('backbone', lambda: detector.backbone(image))
            maps = run('neck', lambda: detector.neck(maps))
            # The rest of `loss`, which calls `extract_feat` first.
            detector.extract_feat = lambda images: maps
            losses = run(
                'RPN, RoI heads, losses' if is_two_stage else 'head, assigner, losses',
                lambda: detector.loss(image, samples),
            )
            del detector.extract_feat
            loss = sum(value.mean() for value in losses_of(losses))
        run('backward', loss.backward)
        run('optimizer', optimizer.step)
        optimizer.zero_grad()

    return step


def _timed(seconds: Counter, device: str) -> Callable:
    """A function that runs a part and adds its time."""

    def wait() -> float:
        if device != 'cpu':
            torch.cuda.synchronize(device)
        return time.perf_counter()

    def run(part: str, call: Callable) -> object:
        start = wait()
        result = call()
        seconds[part] += wait() - start
        return result

    return run


def _counted(operators: Counter) -> Callable:
    """A function that runs a part and counts its operators; a fused optimizer starts one."""

    def run(part: str, call: Callable) -> object:
        with _Operators() as mode:
            result = call()
        operators[part] += mode.number
        return result

    return run


if __name__ == '__main__':
    sys.exit(main())
