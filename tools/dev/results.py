r"""Write the tables of docs/research/results.md from results/*.json beside it, a file for each run.

    python tools/dev/results.py --add bccd/work_dir --name bccd_ptnt_ti --cpu-minutes 9.5 \
        --machine 'AMD EPYC, 1 thread'
    python tools/dev/results.py

The first command also adds a file: the settings and evaluations of a finished run.
"""

import argparse
import json
import re
import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import mean
from typing import Any

from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.tables import markdown
from ptnt_mm.workbench.cli.start import Parser
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.engine.scalar_logs import metrics_in_percent
from ptnt_mm.workbench.pages.report.training_run import read_run

DOCS = Path(__file__).resolve().parents[2] / 'docs' / 'research'

# Keys in the hosts' logs, by the columns of the tables; the main one first.
METRICS = {
    'mask AP': 'coco/segm_mAP',
    'mask AP50': 'coco/segm_mAP_50',
    'box AP': 'coco/bbox_mAP',
    'box AP50': 'coco/bbox_mAP_50',
    'mIoU': 'mIoU',
}

_PEERS = ['box AP', 'box AP50']
_COST = ['runs', 'parameters', 'CPU minutes']

# The rows of a table, by what follows the data set in the name of a run.
NETWORKS = {
    'ptnt_ti': 'PyramidTNT-Ti',
    'resnet18': 'ResNet-18',
    'pvtv2_b0': 'PVTv2-B0',
    'swin_t': 'Swin-T',
    'yolo11n': "Ultralytics' YOLO11n",
    # Heads and starts.
    'gfl_lite0_fast': 'GFL, EfficientNet-Lite0 with ImageNet weights: the recipe',
    'gfl_lite0': 'GFL, EfficientNet-Lite0 with ImageNet weights, slow head',
    'gfl_lite0_8': 'the same with anchors of 8 strides in place of 4',
    'gfl_lite0_batch_1': 'the same with 1 image per step',
    'gfl_lite0_convs_2': 'the same with 2 convolutions in the head in place of 4',
    'gfl_lite0_ema': 'the same with an average of the weights',
    'atss_lite0': 'ATSS, EfficientNet-Lite0 with ImageNet weights',
    'tood_lite0': 'TOOD, EfficientNet-Lite0 with ImageNet weights',
    'gfl_ptnt_ti_fast': 'GFL, PyramidTNT-Ti, random initialisation',
    'gfl_ptnt_ti': 'GFL, PyramidTNT-Ti, random initialisation, slow head',
    'gfl_resnet18': 'GFL, ResNet-18, random initialisation, slow head',
    'gfl_pvtv2_b0': 'GFL, PVTv2-B0, random initialisation, slow head',
    'gfl_swin_t': 'GFL, Swin-T, random initialisation, slow head',
    'mask_rcnn_lite0': 'Mask R-CNN, EfficientNet-Lite0 with ImageNet weights: the recipe',
    'condinst_lite0': 'CondInst, EfficientNet-Lite0 with ImageNet weights',
    'solov2_lite0': 'SOLOv2, EfficientNet-Lite0 with ImageNet weights',
    'rtmdet_ins_lite0': 'RTMDet-Ins, EfficientNet-Lite0 with ImageNet weights',
    'mask_rcnn_ptnt_ti': 'Mask R-CNN, PyramidTNT-Ti, random initialisation: the recipe before',
    'semantic_fpn_lite0': 'Semantic FPN, EfficientNet-Lite0 with ImageNet weights: the recipe',
    'segformer_lite0': "SegFormer's head, EfficientNet-Lite0 with ImageNet weights",
    'upernet_lite0': 'UPerNet, EfficientNet-Lite0 with ImageNet weights',
    'semantic_fpn_ptnt_ti': 'Semantic FPN, PyramidTNT-Ti, random initialisation: the recipe before',
    'retinanet_ptnt_ti': 'RetinaNet, PyramidTNT-Ti, random initialisation: the recipe before',
    # Initialisations.
    'authors': "PyramidTNT-Ti, the authors' initialisation",
    'mimetic': 'PyramidTNT-Ti, mimetic initialisation',
    # Wirings.
    'native_no_norms': 'PyramidTNT-Ti, no output norms',
    'published': 'PyramidTNT-Ti, published wiring',
    'published_norms': 'PyramidTNT-Ti, published wiring, output norms',
    # Norms of the backbone.
    'batchnorm': 'PyramidTNT-Ti, BatchNorm',
    'one_group': 'PyramidTNT-Ti, GroupNorm with one group',
    'batchnorm_resnet18': 'ResNet-18, BatchNorm',
    # Steps on the way to the recipe.
    'start': 'PyramidTNT-Ti: 4 images per step; sizes and colours vary',
    'start_resnet18': 'ResNet-18: the same',
    'batch_2': '2 images per step',
    'no_drop_path': '2 images per step, no drop path',
    'mirrored': '2 images per step, no drop path, only mirrored',
    'half_anchors': '2 images per step, only mirrored, anchors of half the size',
    'half_anchors_resnet18': 'ResNet-18: the same',
    'group_norm': '2 images per step, only mirrored, anchors of half the size, GroupNorm',
    'group_norm_resnet18': 'ResNet-18: the same',
    'group_norm_pvtv2_b0': 'PVTv2-B0: the same',
    'four_anchors': '2 images per step, only mirrored, anchors of 2, 3, 4 and 6 cells, GroupNorm',
}


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('--add', type=Path, metavar='WORK_DIR', help='the logs of a finished run')
    parser.add_argument('--name', default='', help='its data set and network: bccd_ptnt_ti')
    parser.add_argument('--cpu-minutes', type=float, help='its user and system time')
    parser.add_argument('--machine', help='the processor and the threads of these CPU minutes')
    parser.add_argument('--docs', type=Path, default=DOCS, help='the folder of the page')
    return parser.run(write_results, words)


def write_results(args: argparse.Namespace) -> None:
    """Add a run if there is one, then write the page."""
    if args.add:
        write_run(args.docs, describe_run(args.add, args.name, args.cpu_minutes, args.machine))
    write_page(args.docs)


def write_run(docs: Path, run: dict[str, Any]) -> None:
    """Write the file of a run into the folder ``results`` of the page."""
    file = docs / 'results' / f'{run["name"]}_{run["seed"]}.json'
    write_atomically(file, json.dumps(run, indent=1) + '\n')


def write_page(docs: Path) -> None:
    """Write the tables of the page from the files of all runs."""
    page = docs / 'results.md'
    write_atomically(page, with_tables(page.read_text(encoding='utf-8'), docs / 'results'))


def check_name(name: str) -> None:
    """Check that the tables have a row for a data set and network, or raise a UserError."""
    data, _, network = name.partition('_')
    if network not in NETWORKS:
        names = ', '.join(f'{data or "DATA"}_{known}' for known in NETWORKS)
        raise UserError(f'--name must be one of {names}: got {name!r}')


def describe_run(
    work_dir: Path, name: str, cpu_minutes: float | None, machine: str | None
) -> dict[str, Any]:
    """Return the data of a run that the page needs.

    Raises:
        UserError: if the tables have no row of this name, if the time or the machine is missing,
            or if the run was not evaluated.
    """
    check_name(name)
    if cpu_minutes is None or machine is None:
        raise UserError(f'--add needs --cpu-minutes and --machine: got {cpu_minutes} and {machine}')
    run = read_run(work_dir, name)
    if not run.log.val:
        raise UserError(f'{work_dir}: this run has not been evaluated yet')
    parameters = sum(parameter.numel() for parameter in build_model(run.config).parameters())
    return dict(
        name=name,
        seed=run.config.randomness.seed,
        last_logged_iteration=run.log.train[-1]['step'],
        batch_size=run.config.train_dataloader.batch_size,
        cpu_minutes=cpu_minutes,
        parameters=parameters,
        evaluations={line['step']: metrics_in_percent(line, METRICS) for line in run.log.val},
        machine=dict(device=machine, versions=dict(run.how_to_repeat()).get('Versions')),
    )


def with_tables(page: str, folder: Path) -> str:
    """Put the tables of a data set's runs between ``<!-- runs: DATA -->`` and ``<!-- end -->``.

    ``<!-- means: heads -->`` compares the data sets whose names end with '-heads'.
    """

    def replace(match: re.Match) -> str:
        of_many = match[2] == 'means'
        files = sorted(folder.glob(f'*-{match[3]}_*.json' if of_many else f'{match[3]}_*.json'))
        runs = [json.loads(file.read_text(encoding='utf-8')) for file in files]
        render = means if of_many else peers if match[3] == 'peers' else tables
        content = render(runs) if runs else 'No run has finished yet.'
        return f'{match[1]}\n{content}\n\n<!-- end -->'

    marker = r'(<!-- (runs|means): ([\w-]+) -->\n).*?<!-- end -->'
    return re.sub(marker, replace, page, flags=re.DOTALL)


def tables(runs: list[dict[str, Any]]) -> str:
    """Return a row for each network: the last evaluations and the cost; then all evaluations.

    Both show the epochs after which all runs were evaluated.
    """
    steps = [
        step for step in runs[0]['evaluations'] if all(step in run['evaluations'] for run in runs)
    ]
    metrics = list(runs[0]['evaluations'][steps[-1]])
    results, curves = [], []
    for network, label in NETWORKS.items():
        group = [run for run in runs if run['name'].partition('_')[2] == network]
        if not group:
            continue
        values = [[run['evaluations'][steps[-1]][metric] for run in group] for metric in metrics]
        results.append([label, *map(_spread, values), *_cost(group)])
        courses = ([run['evaluations'][step][metrics[0]] for run in group] for step in steps)
        curves.append([label, *(f'{mean(values):.1f}' for values in courses)])
    table = markdown(['network', *metrics, *_COST], results)
    if len(steps) == 1:
        return table
    curve = markdown([f'{metrics[0]} after epoch', *steps], curves)
    return f'{table}\n\n{curve}'


def means(runs: list[dict[str, Any]]) -> str:
    """Return a row for each network: box AP on each data set, and the mean of the sets.

    A network that some set lacks has no mean. Data sets with masks are left out.
    """
    scores: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        *_, last = run['evaluations'].values()
        metric, value = next(iter(last.items()))
        if metric == 'box AP':
            of_network = scores.setdefault(run['name'].partition('_')[2], {})
            of_network.setdefault(_data_set(run), []).append(value)
    sets = sorted({name for found in scores.values() for name in found})
    rows = []
    for network, label in NETWORKS.items():
        if len(found := scores.get(network, {})) < 2:
            continue
        cells = [_spread(found[name]) if name in found else '–' for name in sets]
        complete = len(found) == len(sets)
        average = f'{mean(map(mean, found.values())):.1f}' if complete else '–'
        rows.append([label, *cells, average])
    return markdown(['network', *(f'`{name}`' for name in sets), 'mean'], rows)


def _data_set(run: dict[str, Any]) -> str:
    """The folder of a run's images: 'cards' for 'cards-heads_gfl_lite0'."""
    return run['name'].partition('_')[0].rpartition('-')[0]


def peers(runs: list[dict[str, Any]]) -> str:
    """Return a row for each data set and network that peers.py ran, with its only evaluation."""
    rows = []
    for name, files in groupby(runs, key=itemgetter('name')):
        group = list(files)
        _, data, network = name.split('_', 2)
        evaluations = [pair for run in group for pair in run['evaluations'].items()]
        values = [_spread([scores[metric] for _, scores in evaluations]) for metric in _PEERS]
        cells = [f'`{data}`: {NETWORKS[network]}', group[0]['starts_from'], *values]
        rows.append([*cells, f'{mean(int(epoch) for epoch, _ in evaluations):.0f}', *_cost(group)])
    headings = ['data set and network', 'starts from', *_PEERS, 'epochs', *_COST]
    return markdown(headings, rows)


def _cost(group: list[dict[str, Any]]) -> list[str]:
    """The cells below ``_COST``."""
    size, minutes = group[0]['parameters'] / 1e6, mean(run['cpu_minutes'] for run in group)
    return [str(len(group)), f'{size:.1f} M', f'{minutes:.1f}']


def _spread(values: list[float]) -> str:
    """The mean; for several values, also the smallest and the largest."""
    each = f' ({min(values):.1f} to {max(values):.1f})' if len(values) > 1 else ''
    return f'{mean(values):.1f}{each}'


if __name__ == '__main__':
    sys.exit(main())
