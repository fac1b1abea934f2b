"""Measure everything that only a GPU can show, in one go: `make gpu`.

    python tools/dev/measure_gpu.py --out work_dirs/gpu    # twelve minutes, besides compiling
    python tools/dev/measure_gpu.py --out work_dirs/gpu_tried --device cpu    # with small sizes

Every step is a command, whose output stays in OUT/STEP.log, its numbers in OUT/STEP. Parity comes
first, then the most valuable figures. Steps that have succeeded, listed in OUT/progress.json, are
not repeated: to go on after an interruption, run the same command again. Prints the tables at the
end, and what follows from each of the rules in docs/research/performance.md.
"""

import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from statistics import mean, median

from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.tables import new_table, to_text
from ptnt_mm.workbench.cli.start import Parser

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

STEP = ['swin_t', 'ptnt_s', 'swin_t+reduce_overhead', 'ptnt_s+reduce_overhead']
FUSED, FOREACH = 'mask_rcnn_ptnt_s+fused', 'mask_rcnn_ptnt_s+foreach'
DETECTORS = [
    f'{detector}_{backbone}+fused{way}'
    for detector in ('retinanet', 'mask_rcnn')
    for backbone in ('swin_t', 'ptnt_s')
    for way in ('', '+reduce_overhead')
] + [FOREACH]
PLAIN, REDUCED = 'ptnt_s', 'ptnt_s+reduce_overhead'
COMPILED, CHANNELS_LAST = 'ptnt_s+compile', 'ptnt_s+channels_last'
VARIANTS = [PLAIN, REDUCED, COMPILED, CHANNELS_LAST, 'ptnt_s_cp']
PEERS = ['swin_t', 'pvt_v2_b2', 'resnet50']
OURS = ['ptnt_s', 'ptnt_ti', 'ptnt_m', 'ptnt_b', 'ptnt_s_eager']
TIMED = ('step', 'detectors', 'variants', 'speed')
RUNS = ('seed-1', 'seed-2', 'reduce-overhead')
TRAINING = 'demo_retinanet_ptnt_ti'
COMPILING = (
    "custom_hooks=[dict(type='CompileHook', parts=['backbone', 'neck'], mode='reduce-overhead')]"
)
CURVE = 20
"""Iterations whose losses are averaged into a point of the curve."""

GAIN = 0.95
"""What is to be kept takes at most this share of another's time for a training step."""


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
        'step': timed('step', [PLAIN] if on_cpu else STEP),
        'detectors': timed('detectors', [FUSED, FOREACH] if on_cpu else DETECTORS, *training),
        'variants': timed('variants', [PLAIN, CHANNELS_LAST] if on_cpu else VARIANTS, *training),
        'profile': [*profile, '--size', '64x96', '--steps', '1'] if on_cpu else profile,
        'data': [python, '-m', 'ptnt_mm', 'demo', out / 'data/demo'],
        'seed-1': trained('seed-1', '1'),
        'reduce-overhead': trained('reduce-overhead', '1', '--cfg-options', COMPILING),
        'seed-2': trained('seed-2', '2'),
        'speed': timed('speed', OURS[:1] if on_cpu else [*OURS, *PEERS]),
    }
    if on_cpu:
        print('without a GPU: nothing is compiled', flush=True)
        del steps['reduce-overhead']
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
    losses = {name: losses_of(out / name) for name in RUNS if name in done}
    if losses:
        found.append(f'{TRAINING}: mean losses of {CURVE} iterations\n\n{curves(losses)}')
    rows = []
    for name in ('variants', 'detectors'):
        if name in done:
            rows += json.loads((out / name / 'benchmark.json').read_text(encoding='utf-8'))['rows']
    found.append(f'By the rules of docs/research/performance.md\n\n{verdicts(rows, losses)}')
    return '\n\n'.join(found)


def verdicts(rows: list[dict], losses: dict[str, list[float]]) -> str:
    """What each rule says, as a table.

    Args:
        rows: The training steps of the steps 'variants' and 'detectors'.
        losses: Of every iteration, by the name of the run.
    """
    table = new_table('rule', 'a step of', 'to', '2 images', '8 images', 'verdict')
    for rule, name, other, limit, batches, words in (
        ('reduce-overhead', REDUCED, PLAIN, GAIN, (2,), ('kept', 'dropped')),
        ('torch.compile', COMPILED, PLAIN, GAIN, (2, 8), ('documented', 'dropped')),
        ('channels-last', CHANNELS_LAST, PLAIN, GAIN, (2, 8), ('kept', 'deleted')),
        ('AdamW(fused=True)', FUSED, FOREACH, 1.0, (2,), ('kept', '`foreach` in the schedules')),
    ):
        ratios = {batch: time_to(rows, name, other, batch) for batch in (2, 8)}
        known = [ratios[batch] for batch in batches if ratios[batch] is not None]
        good, bad = words
        verdict = (good if min(known) <= limit else bad) if known else 'not measured'
        if rule == 'reduce-overhead' and verdict == good:
            verdict = {True: good, False: bad, None: 'losses not measured'}[trains_alike(losses)]
        shown = ('' if ratio is None else f'{ratio:.2f}' for ratio in ratios.values())
        table.add_row(rule, name, other, *shown, verdict)
    return to_text(table)


def time_to(rows: list[dict], name: str, other: str, batch: int) -> float | None:
    """The time of one contender to another's, the median over rounds; None without both."""
    seconds = {row['name']: row['seconds'] for row in rows if row['batch'] == batch}
    if name not in seconds or other not in seconds:
        return None
    return median(one / two for one, two in zip(seconds[name], seconds[other], strict=True))


def trains_alike(losses: dict[str, list[float]]) -> bool | None:
    """Whether the mode 'reduce-overhead' changes losses no more than another seed does."""
    if set(RUNS) - losses.keys():
        return None
    seed, other, reduced = (points_of(losses[name]) for name in RUNS)
    by_seed, by_mode = (
        mean(abs(one - two) for one, two in zip(seed, points, strict=False))
        for points in (other, reduced)
    )
    return by_mode <= by_seed


def curves(losses: dict[str, list[float]]) -> str:
    """The losses of training runs, as a table."""
    table, points = new_table('iterations', *losses), map(points_of, losses.values())
    length = min(map(len, losses.values()))
    for number, means in enumerate(zip(*points, strict=False)):
        start = number * CURVE
        stop = min(start + CURVE, length)
        table.add_row(f'{start + 1} to {stop}', *(f'{loss:.3f}' for loss in means))
    return to_text(table)


def points_of(losses: list[float]) -> list[float]:
    """Means of ``CURVE`` iterations."""
    return [mean(losses[start : start + CURVE]) for start in range(0, len(losses), CURVE)]


def losses_of(work_dir: Path) -> list[float]:
    """The loss of every iteration of a run."""
    (scalars,) = work_dir.glob('*/vis_data/scalars.json')
    lines = map(json.loads, scalars.read_text(encoding='utf-8').splitlines())
    return [line['loss'] for line in lines if 'loss' in line]


if __name__ == '__main__':
    sys.exit(main())
