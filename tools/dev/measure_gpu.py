"""Measure everything that only a GPU can show, in one go: `make gpu`.

    python tools/dev/measure_gpu.py --out work_dirs/gpu    # twelve minutes
    python tools/dev/measure_gpu.py --out work_dirs/gpu_tried --device cpu    # with small sizes

Every step is a command, whose output stays in OUT/STEP.log, its numbers in OUT/STEP. Parity comes
first, then the most valuable figures. Steps that have succeeded, listed in OUT/progress.json, are
not repeated: to go on after an interruption, run the same command again. Prints the tables at the
end, and what follows from three of the rules in docs/performance.md; the others compare tables.
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
from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.tables import new_table, to_text

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

STEP = ['swin_t', 'ptnt_s', 'swin_t+graph', 'ptnt_s+graph']
DETECTORS = [
    f'{detector}_{backbone}+fused{way}'
    for detector in ('retinanet', 'mask_rcnn')
    for backbone in ('swin_t', 'ptnt_s')
    for way in ('', '+graph')
] + ['mask_rcnn_ptnt_s+foreach']
BASELINE = 'ptnt_s+graph'
RULED = ['ptnt_s_triton+graph', 'ptnt_s+channels_last+graph', 'ptnt_s+compile']
VARIANTS = [BASELINE, *RULED, 'ptnt_s+trees', 'ptnt_s', 'ptnt_s_triton', 'ptnt_s_cp']
PEERS = ['swin_t', 'pvt_v2_b2', 'resnet50']
OURS = ['ptnt_s', 'ptnt_ti', 'ptnt_m', 'ptnt_b', 'ptnt_s_eager']
TIMED = ('step', 'detectors', 'variants', 'speed')
RUNS = ('seed-1', 'seed-2', 'graphs')
TRAINING = 'demo_retinanet_ptnt_ti'
CURVE = 20
"""Iterations whose losses are averaged into a point of the curve."""

GAIN = 0.95
"""A variant is kept if a training step takes at most this share of the baseline's time with two
images or with eight, and deleted otherwise."""


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
    out = args.out.resolve()
    steps = steps_for(args.device, out)
    for name in args.steps or steps:
        if name not in steps:
            raise UserError(f'step {name!r} is unknown: use some of {", ".join(steps)}')
    out.mkdir(parents=True, exist_ok=True)
    failed = [name for name in args.steps or steps if not run(name, steps[name], out, args.device)]
    print(report(out))
    if failed:
        logs = ', '.join(str(args.out / f'{name}.log') for name in failed)
        raise UserError(f'failed: {", ".join(failed)}; see {logs}')


def steps_for(device: str, out: Path) -> dict[str, list[str | Path]]:
    """The commands, by the name of the step; on a CPU, small enough for a few minutes."""
    on_cpu = device == 'cpu'
    python = sys.executable
    speed = [python, HERE / 'time_backbones.py', '--device', device, '--dtypes', 'bfloat16']
    speed += ['--overwrite', '--sides', '--batches', *(['2'] if on_cpu else ['2', '8'])]
    speed += ['--sizes', '64x96', '--no-memory'] if on_cpu else ['--sizes', '800x1344']
    training = ['--modes', 'training step']

    def timed(name: str, models: list[str], *options: str) -> list[str | Path]:
        rounds = '1' if on_cpu else '10'
        return [*speed, '--out', out / name, '--models', *models, '--rounds', rounds, *options]

    train = [python, '-m', 'ptnt_mm', 'train', TRAINING, '--overwrite']
    short = ['--cfg-options', f'train_cfg.max_epochs={1 if on_cpu else 6}']
    short += ['train_cfg.val_interval=100', 'default_hooks.logger.interval=1']
    short += ['train_dataloader.dataset.indices=8'] if on_cpu else []

    def trained(name: str, seed: str, *options: str) -> list[str | Path]:
        mode = [] if on_cpu else ['--amp', *options]
        return [*train, '--work-dir', out / name, '--seed', seed, *mode, *short]

    profiled = ['retinanet_ptnt_s'] if on_cpu else ['mask_rcnn_ptnt_s', 'retinanet_ptnt_s']
    profile = [python, HERE / 'profile_detector.py', *profiled, '--device', device]
    steps = {
        'tests': [python, '-m', 'pytest', '-q', '-m', 'gpu', ROOT / 'tests/gpu'],
        'step': timed('step', STEP[1::2] if on_cpu else STEP),
        'detectors': timed('detectors', DETECTORS[2:4] if on_cpu else DETECTORS, *training),
        'variants': timed('variants', VARIANTS[:3:2] if on_cpu else VARIANTS, *training),
        'profile': [*profile, '--size', '64x96', '--steps', '1'] if on_cpu else profile,
        'data': [python, '-m', 'ptnt_mm', 'demo', out / 'data/demo'],
        'seed-1': trained('seed-1', '1'),
        'graphs': trained('graphs', '1', '--cuda-graphs'),
        'seed-2': trained('seed-2', '2'),
        'speed': timed('speed', OURS[:1] if on_cpu else [*OURS, *PEERS]),
    }
    if on_cpu:
        print('without a GPU: no run with graphs, no Triton; graphs are stand-ins', flush=True)
        del steps['graphs']
    return steps


def run(name: str, command: list[str | Path], out: Path, device: str) -> bool:
    """Run a step unless it has succeeded before; return whether it has now."""
    progress = progress_in(out)
    if progress.get('device', device) != device:
        raise UserError(
            f'{out} has measurements of {progress["device"]}: choose another folder for `out`'
        )
    if name in progress.get('seconds', {}):
        return True
    paths = [ROOT, *filter(None, [os.environ.get('PYTHONPATH')])]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(map(str, paths))}
    environment |= {'PTNT_GPU': device}
    if device == 'cpu':
        environment |= {'CUDA_VISIBLE_DEVICES': ''}
    start = time.monotonic()
    with (out / f'{name}.log').open('w', encoding='utf-8') as file:
        status = subprocess.run(
            command, cwd=out, env=environment, stdout=file, stderr=subprocess.STDOUT
        ).returncode
    seconds = round(time.monotonic() - start)
    print(f'{name}: {seconds} s, exit status {status}', flush=True)
    if status == 0:
        progress = dict(device=device, seconds=progress.get('seconds', {}) | {name: seconds})
        write_atomically(out / 'progress.json', json.dumps(progress, indent=1) + '\n')
    return status == 0


def progress_in(out: Path) -> dict:
    """The device, and the seconds of each step that has succeeded."""
    file = out / 'progress.json'
    return json.loads(file.read_text(encoding='utf-8')) if file.exists() else {}


def report(out: Path) -> str:
    """The tables of all steps that have succeeded."""
    found, done = [], progress_in(out).get('seconds', {})
    for name in done:
        log = (out / f'{name}.log').read_text(encoding='utf-8')
        if name in TIMED:
            _, date, tables = log.partition('date ')
            found.append((date + tables).strip())
        elif name == 'tests':
            found += [line for line in log.splitlines() if ' passed' in line]
        elif name == 'profile':
            found.append(log[log.find('|') :].strip())
    if 'variants' in done:
        rows = json.loads((out / 'variants/benchmark.json').read_text(encoding='utf-8'))['rows']
        found.append(f'Training steps, time to {BASELINE}\n\n{verdicts(rows)}')
    runs = [name for name in RUNS if name in done]
    if runs:
        found.append(f'{TRAINING}: mean losses of {CURVE} iterations\n\n{curves(out, runs)}')
    return '\n\n'.join(found)


def verdicts(rows: list[dict]) -> str:
    """What the rule says about each variant, as a table."""
    ratios: dict[str, dict[int, float]] = {}
    for row in rows:
        if row['name'] != BASELINE:
            ratios.setdefault(row['name'], {})[row['batch']] = row['ratio']
    batches = sorted({row['batch'] for row in rows})
    table = new_table('variant', *(f'{batch} images' for batch in batches), 'by the rule')
    for name, by_batch in ratios.items():
        verdict = 'kept' if min(by_batch.values()) <= GAIN else 'deleted'
        verdict = verdict if name in RULED else ''
        table.add_row(name, *(f'{by_batch[batch]:.2f}' for batch in batches), verdict)
    return to_text(table)


def curves(out: Path, runs: list[str]) -> str:
    """The losses of training runs, as a table."""
    losses = {name: losses_of(out / name) for name in runs}
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
