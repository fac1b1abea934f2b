"""Measure everything that only a GPU can show, in one go: `make gpu`.

    python tools/dev/measure_gpu.py --out work_dirs/gpu    # ten minutes
    python tools/dev/measure_gpu.py --out work_dirs/gpu_tried --device cpu    # with small sizes

Every step is a command, whose output stays in OUT/STEP.log. Steps that have succeeded are not
repeated: to go on after an interruption, run the same command again. Prints the tables at the end.
"""

import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from statistics import mean

from ptnt_mm.cli.start import Parser
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.tables import new_table, to_text

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

PEERS = ['swin_t', 'pvt_v2_b2', 'resnet50']
OURS = ['ptnt_s', 'ptnt_ti', 'ptnt_m', 'ptnt_b', 'ptnt_s_eager']
WAYS = ['ptnt_s', 'ptnt_s+graph', 'ptnt_s_cp', 'swin_t', 'swin_t+graph', 'resnet50']
WAYS += ['resnet50+graph', 'resnet50+channels_last']
TRITON = ['ptnt_s', 'ptnt_s_triton', 'ptnt_s_eager', 'ptnt_s+compile', 'ptnt_s_triton+graph']
TRAINING = 'demo_retinanet_ptnt_ti'
CURVE = 20
"""Iterations whose losses are averaged into a point of the curve."""


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('--out', type=Path, required=True, metavar='FOLDER')
    parser.add_argument('--device', default='cuda', help='cuda, cuda:1 or cpu')
    parser.add_argument('--steps', nargs='+', metavar='STEP', help='only these, in this order')
    return parser.run(measure, words)


def measure(args: Namespace) -> None:
    """Run the steps that are missing, and print all tables.

    Raises:
        UserError: if a step is unknown, or has failed.
    """
    steps = steps_for(args.device, args.out.resolve())
    for name in args.steps or steps:
        if name not in steps:
            raise UserError(f'step {name!r} is unknown: use some of {", ".join(steps)}')
    args.out.mkdir(parents=True, exist_ok=True)
    failed = [name for name in args.steps or steps if not run(name, steps[name], args)]
    print(report(args.out))
    if failed:
        logs = ', '.join(str(args.out / f'{name}.log') for name in failed)
        raise UserError(f'failed: {", ".join(failed)}; see {logs}')


def steps_for(device: str, out: Path) -> dict[str, list[str | Path]]:
    """The commands, by the name of the step; on a CPU, small enough for a few minutes."""
    on_cpu = device == 'cpu'
    python = sys.executable
    speed = [python, HERE / 'time_backbones.py', '--device', device, '--sides', '--sizes']
    speed += ['64x96', '--rounds', '2'] if on_cpu else ['800x1344', '--rounds', '10']
    batches = ['1'] if on_cpu else ['2', '8']
    ours = OURS[:1] if on_cpu else OURS

    def timed(name: str, models: list[str], dtype: str, batches: list[str]) -> list[str | Path]:
        chosen = ['--models', *models, '--dtypes', dtype, '--batches', *batches]
        return [*speed, *chosen, '--out', out / name, '--overwrite']

    train = [python, '-m', 'ptnt_mm', 'train', TRAINING, '--overwrite', '--work-dir']
    short = ['--cfg-options', f'train_cfg.max_epochs={1 if on_cpu else 4}']
    short += ['train_cfg.val_interval=100', 'default_hooks.logger.interval=1']
    short += ['train_dataloader.dataset.indices=8'] if on_cpu else []
    steps = {
        'speed': timed('speed', [*ours, *PEERS], 'bfloat16', batches),
        'ways': timed('ways', WAYS, 'bfloat16', batches[:1]),
        'tests': [python, '-m', 'pytest', '-q', '-m', 'gpu', ROOT / 'tests/gpu'],
        'data': [python, '-m', 'ptnt_mm', 'demo', out / 'data/demo'],
        'training-float32': [*train, out / 'training-float32', *short],
        'training-amp': [*train, out / 'training-amp', '--amp', *short],
        'float32': timed(
            'float32', [*dict.fromkeys([ours[0], ours[-1]]), *PEERS], 'float32', batches[:1]
        ),
        'compiled': timed('compiled', ['ptnt_s', 'ptnt_s+compile'], 'bfloat16', batches[:1]),
        'triton': timed('triton', TRITON, 'bfloat16', batches),
    }
    if on_cpu:
        del steps['training-amp'], steps['triton']  # which need a GPU
    return steps


def run(name: str, command: list[str | Path], args: Namespace) -> bool:
    """Run a step unless it has succeeded before; return whether it has now."""
    done, log = args.out / f'{name}.done', args.out / f'{name}.log'
    if done.exists():
        device = done.read_text(encoding='utf-8')
        if device != args.device:
            raise UserError(
                f'{args.out} has measurements of {device}: choose another folder for `out`'
            )
        return True
    paths = [ROOT, *filter(None, [os.environ.get('PYTHONPATH')])]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(map(str, paths))}
    environment |= {'PTNT_GPU': args.device}
    if args.device == 'cpu':
        environment |= {'CUDA_VISIBLE_DEVICES': ''}
    start = time.monotonic()
    with log.open('w', encoding='utf-8') as file:
        status = subprocess.run(
            command, cwd=args.out, env=environment, stdout=file, stderr=subprocess.STDOUT
        ).returncode
    print(f'{name}: {time.monotonic() - start:.0f} s, exit status {status}', flush=True)
    if status == 0:
        done.write_text(args.device, encoding='utf-8')
    return status == 0


def report(out: Path) -> str:
    """The tables of all steps that have succeeded."""
    found = []
    for name in ('speed', 'ways', 'float32', 'compiled', 'triton'):
        if (out / f'{name}.done').exists():
            _, date, tables = (out / f'{name}.log').read_text(encoding='utf-8').partition('date ')
            found.append((date + tables).strip())
    if (out / 'tests.done').exists():
        lines = (out / 'tests.log').read_text(encoding='utf-8').splitlines()
        found += [line for line in lines if ' passed' in line]
    if all((out / f'training-{name}.done').exists() for name in ('float32', 'amp')):
        found.append(f'{TRAINING}: mean losses of {CURVE} iterations\n\n{curves(out)}')
    return '\n\n'.join(found)


def curves(out: Path) -> str:
    """The losses of both training runs, as a table."""
    losses = {name: losses_of(out / f'training-{name}') for name in ('float32', 'amp')}
    table = new_table('iterations', *losses)
    length = min(map(len, losses.values()))
    for start in range(0, length, CURVE):
        stop = min(start + CURVE, length)
        means = (f'{mean(values[start:stop]):.3f}' for values in losses.values())
        table.add_row(f'{start + 1} to {stop}', *means)
    return to_text(table)


def losses_of(work_dir: Path) -> list[float]:
    """The loss of every iteration of a run."""
    (scalars,) = work_dir.glob('*/vis_data/scalars.json')
    lines = map(json.loads, scalars.read_text(encoding='utf-8').splitlines())
    return [line['loss'] for line in lines if 'loss' in line]


if __name__ == '__main__':
    sys.exit(main())
