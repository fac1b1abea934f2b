"""Compare a detector made by `ptnt new` with Ultralytics' YOLO, for docs/research/results.md.

    ptnt new photos/bccd bccd --backbone ptnt_ti --weights none --size 256 --epochs 10
    python tools/dev/peers.py bccd --name bccd_ptnt_ti --env yolo_env --out work_dirs/peers_bccd

Both get the same images, boxes and image size, one thread, and the CPU minutes (user and system
time, with the start) that the project's training takes. YOLO trains for as many epochs as fit, with
its own defaults. Only the last epochs are evaluated, on the validation images, by the same code.

Ultralytics is under the AGPL. It is installed into a separate environment, and used only through
its command `yolo`: nothing of this package imports it. After the installation, it downloads
nothing.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from benchmark.machine import describe_machine
from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.pretrained import pretrained_init
from ptnt_mm.workbench.cli.start import Parser
from ptnt_mm.workbench.cli.values import not_negative
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.data.coco import CocoFile, read_coco, read_json
from ptnt_mm.workbench.pages.report.coco_scores import read_annotations, score_results
from results import DOCS, check_name, describe_run, peers, write_page, write_run

YOLO = 'yolo11n'
PACKAGES = ['ultralytics==8.4.190', f'torch=={torch.__version__.partition("+")[0]}', 'torchvision']
PROBES = (1, 3)  # epochs of two short runs


def main(words: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = Parser(__doc__)
    parser.add_argument('project', type=Path, help='a folder created by ptnt new, for boxes')
    parser.add_argument('--name', required=True, help='its data set and network: bccd_ptnt_ti')
    parser.add_argument('--env', type=Path, required=True, help="folder of YOLO's environment")
    parser.add_argument('--out', type=Path, required=True, help='new folder for logs and weights')
    parser.add_argument('--seed', type=not_negative, default=0)
    parser.add_argument(
        '--yolo', nargs='+', default=[], metavar='KEY=VALUE', help="YOLO's settings: batch=4"
    )
    parser.add_argument('--docs', type=Path, default=DOCS, help='the folder of the page')
    return parser.run(compare, words)


def compare(args: argparse.Namespace) -> None:
    """Train and evaluate both; write a file for each, and the page.

    Raises:
        UserError: if the tables have no row of this name, if the output folder exists, or if a
            command fails.
    """
    check_name(args.name)
    project, out = args.project.resolve(), args.out.resolve()
    if out.exists():
        raise UserError(f'--out {out} exists: choose another folder, or remove it')
    config = read_config(project)
    labels = {split: read_coco(project / 'labels' / f'{split}.json') for split in ('train', 'val')}
    yolo = partial(run_yolo, install(args.env.absolute(), out), out)
    data = write_yolo_data(labels, Path(config.images), out / 'data')
    facts = describe_machine('cpu', 1)
    machine = f'{facts["device"]} {facts["vectors"]}, 1 thread'

    minutes, boxes = train_project(project, config.train_cfg.max_epochs, args.seed, out)
    ours = describe_run(out / 'ptnt', args.name, round(minutes, 2), machine)
    ours['evaluations'] = {list(ours['evaluations'])[-1]: evaluate(boxes, labels['val'])}
    start = pretrained_init(config.model.backbone.get('init_cfg'))
    ours['starts_from'] = Path(start['checkpoint']).name if start else 'random'

    same = [f'data={data}', f'imgsz={max(config.size)}']
    settings = [*same, f'seed={args.seed}', *args.yolo]
    epochs, minutes, parameters = train_yolo(yolo, settings, minutes, out)
    limit = config.model.test_cfg.get('rcnn', config.model.test_cfg).max_per_img
    boxes = detect_with_yolo(yolo, [*same, f'max_det={limit}'], labels['val'], out)
    theirs = dict(
        name=f'{args.name.partition("_")[0]}_{YOLO}',
        seed=args.seed,
        settings=args.yolo,
        cpu_minutes=round(minutes, 2),
        parameters=parameters,
        evaluations={str(epochs): evaluate(boxes, labels['val'])},
        machine=dict(device=machine, versions=', '.join(PACKAGES)),
        starts_from='random',
    )

    runs = [run | dict(name=f'peers_{run["name"]}') for run in (ours, theirs)]
    for run in runs:
        write_run(args.docs, run)
    write_page(args.docs)
    print(peers(runs))


def install(folder: Path, out: Path) -> Path:
    """Create the environment of YOLO if it is missing, and return the path of its command."""
    python, uv = folder / 'bin' / 'python', [sys.executable, '-m', 'uv']
    if not python.exists():
        run_command([*uv, 'venv', '--python', sys.executable, folder], out / 'venv.log')
    run_command([*uv, 'pip', 'install', '--python', python, *PACKAGES], out / 'install.log')
    return python.with_name('yolo')


def run_command(command: Sequence[object], log: Path, **environment: str) -> float:
    """Run a command with one thread; return the CPU minutes of it and of its children.

    Raises:
        UserError: if it fails; its output is in the log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open('w') as output:
        status = subprocess.call(
            list(map(str, command)),
            env={**os.environ, 'OMP_NUM_THREADS': '1', **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    if status:
        raise UserError(f'{" ".join(map(str, command))} failed: see {log}')
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / 60


def run_yolo(command: Path, out: Path, mode: str, name: str, words: Sequence[str]) -> float:
    """Run YOLO's command without the network; return its CPU minutes."""
    home = out / 'yolo_home'
    for font in ('Arial.ttf', 'Arial.Unicode.ttf'):  # downloaded otherwise, even without plots
        write_atomically(home / 'Ultralytics' / font, '')
    offline = dict(YOLO_CONFIG_DIR=str(home), YOLO_OFFLINE='true', YOLO_AUTOINSTALL='false')
    # It sets the number of threads to that of the processors, less one (from Python 3.13).
    offline['PYTHON_CPU_COUNT'] = '1'
    usual = ['device=cpu', 'workers=0', 'plots=False', f'project={out}', f'name={name}']
    return run_command([command, 'detect', mode, *usual, *words], out / f'{name}.log', **offline)


def write_yolo_data(labels: dict[str, CocoFile], images: Path, folder: Path) -> Path:
    """Write images and labels in YOLO's layout, named by the images' ids; return its data file.

    Images are copied, because Ultralytics repairs broken ones in place.

    Args:
        labels: The annotations of each split.
        images: The folder that the names of images are relative to.
        folder: Output folder.
    """
    for split, coco in labels.items():
        for kind in ('images', 'labels'):
            (folder / kind / split).mkdir(parents=True)
        for number, image in coco.images.items():
            source = images / image['file_name']
            shutil.copyfile(source, folder / 'images' / split / f'{number}{source.suffix}')
            # Without objects, an empty file: the image is background.
            lines = '\n'.join(yolo_lines(coco, number))
            (folder / 'labels' / split / f'{number}.txt').write_text(lines)
    file = folder / 'data.yaml'
    names, places = list(labels['train'].names.values()), {x: f'images/{x}' for x in labels}
    file.write_text(json.dumps(dict(path=str(folder), names=names, **places)))  # JSON is YAML
    return file


def yolo_lines(coco: CocoFile, number: int) -> list[str]:
    """The boxes of an image: class index, centre, width and height as shares of the image.

    YOLO refuses an image with a box that reaches beyond it, so boxes are clipped. It cannot ignore
    crowds: they are omitted, and so learned as background.
    """
    image, ids, lines = coco.images[number], list(coco.names), []
    for entry in coco.annotations:
        if entry['image_id'] != number or entry.get('iscrowd'):
            continue
        x, y, w, h = entry['bbox']
        left, right = (min(max(value / image['width'], 0), 1) for value in (x, x + w))
        top, bottom = (min(max(value / image['height'], 0), 1) for value in (y, y + h))
        if left < right and top < bottom:
            box = ((left + right) / 2, (top + bottom) / 2, right - left, bottom - top)
            index = ids.index(entry['category_id'])
            lines.append(' '.join([str(index), *(f'{value:.6f}' for value in box)]))
    return lines


def train_project(project: Path, epochs: int, seed: int, out: Path) -> tuple[float, Path]:
    """Train the project, and detect on its validation images.

    Returns:
        The CPU minutes of training, and the file of boxes in COCO's format of results.
    """
    ptnt, work_dir = [sys.executable, '-m', 'ptnt_mm'], out / 'ptnt'
    once = ['--cfg-options', f'train_cfg.val_interval={epochs}']
    words = ['train', project, '--work-dir', work_dir, '--seed', seed, *once]
    minutes = run_command([*ptnt, *words], out / 'ptnt_train.log')
    options = [
        'test_dataloader.dataset.ann_file=val.json',
        f'test_evaluator.ann_file={project / "labels" / "val.json"}',
        f'test_evaluator.outfile_prefix={out / "ptnt_boxes"}',
    ]
    last = (work_dir / 'last_checkpoint').read_text().strip()
    words = ['test', project, last, '--work-dir', out / 'ptnt_test', '--cfg-options', *options]
    run_command([*ptnt, *words], out / 'ptnt_test.log')
    return minutes, out / 'ptnt_boxes.bbox.json'


def train_yolo(
    yolo: partial, settings: Sequence[str], budget: float, out: Path
) -> tuple[int, float, int]:
    """Train YOLO from random initialisation, within a budget of CPU minutes.

    Returns:
        The epochs, the CPU minutes and the number of parameters.
    """
    # AMP would be tried with weights that are downloaded.
    start = [f'model={YOLO}.yaml', 'pretrained=False', 'amp=False', 'val=False', *settings]
    # Mosaics take time, and YOLO makes none in its last ten epochs: the probes have no such end.
    probes = [
        yolo('train', f'probe_{n}', [*start, f'epochs={n}', 'close_mosaic=0']) for n in PROBES
    ]
    epochs = epochs_within(budget, probes)
    minutes = yolo('train', 'yolo', [*start, f'epochs={epochs}'])
    parameters = re.search(r' ([\d,]+) parameters', (out / 'yolo.log').read_text())[1]
    return epochs, minutes, int(parameters.replace(',', ''))


def epochs_within(budget: float, minutes: Sequence[float]) -> int:
    """Return how many epochs fit into a budget of CPU minutes, from those of the two probes."""
    of_epoch = (minutes[1] - minutes[0]) / (PROBES[1] - PROBES[0])
    start = minutes[0] - PROBES[0] * of_epoch
    return max(1, int((budget - start) / of_epoch))


def detect_with_yolo(yolo: partial, settings: Sequence[str], coco: CocoFile, out: Path) -> Path:
    """Detect on the validation images as YOLO's own validation does, after its last epoch.

    Returns:
        The file of boxes in COCO's format of results.
    """
    last = f'model={out / "yolo" / "weights" / "last.pt"}'
    yolo('val', 'yolo_val', [last, *settings, 'conf=0.001', 'save_json=True'])
    ids, boxes = list(coco.names), read_json(out / 'yolo_val' / 'predictions.json')
    for box in boxes:
        box['category_id'] = ids[box['category_id'] - 1]  # YOLO counts classes from 1
    file = out / 'yolo_boxes.json'
    write_atomically(file, json.dumps(boxes))
    return file


def evaluate(boxes: Path, coco: CocoFile) -> dict[str, float]:
    """Return COCO's box AP and AP50 of a file of results, in percent, to a decimal."""
    scores = score_results(read_annotations(coco.path), boxes, 'bbox').twelve
    return {f'box {name}': round(100 * scores[name], 1) for name in ('AP', 'AP50')}


if __name__ == '__main__':
    sys.exit(main())
