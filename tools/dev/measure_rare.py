"""AP of rare classes with and without repeated images, for docs/results.md.

    ptnt new photos/cards cards --size 256 --epochs 15
    python tools/dev/measure_rare.py cards RUNS --rare nine queen --images 6 \
        --thresholds 0.25 --seeds 0 1

Training images of the rare classes are removed until each class is in IMAGES of them; the seed
decides which. Each project is then trained plainly, and with MMEngine's ClassBalancedDataset for
each threshold, for as many epochs as make the same number of iterations. The last epoch is measured
on the validation and test images together, which are not changed. RUNS keeps what is finished.
"""

import copy
import json
import random
import sys
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from math import ceil
from pathlib import Path
from statistics import mean
from typing import Any

from mmengine.config import Config
from mmengine.registry import DATASETS, DefaultScope

from peers import run_command
from ptnt_mm.cli.start import Parser
from ptnt_mm.config.read import read_config
from ptnt_mm.config.view import SPLITS
from ptnt_mm.labels.coco import read_json
from ptnt_mm.options import not_negative, positive
from ptnt_mm.report.coco_scores import read_annotations, score_results
from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.tables import markdown


def make_rare(
    labels: dict[str, Any], rare: Collection[str], images: int, seed: int
) -> dict[str, Any]:
    """COCO labels without most images of the rare classes: each is left in ``images`` of them.

    Raises:
        UserError: if there is no such class, or it has fewer images.
    """
    names = {item['id']: item['name'] for item in labels['categories']}
    if unknown := set(rare) - set(names.values()):
        raise UserError(f'--rare: no class {sorted(unknown)}: choose from {sorted(names.values())}')
    rare_in = defaultdict(set)
    for item in labels['annotations']:
        rare_in[item['image_id']].update({names[item['category_id']]} & set(rare))
    order = random.Random(seed).sample(labels['images'], len(labels['images']))
    count, kept = Counter(), set()
    for image in order:
        if all(count[name] < images for name in rare_in[image['id']]):
            count.update(rare_in[image['id']])
            kept.add(image['id'])
    if few := [name for name in rare if count[name] < images]:
        raise UserError(f'--images {images}: {few[0]} can have only {count[few[0]]}')
    return dict(
        labels,
        images=[image for image in labels['images'] if image['id'] in kept],
        annotations=[item for item in labels['annotations'] if item['image_id'] in kept],
    )


def join(splits: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """COCO labels of several splits with the same classes, with new ids."""
    images, objects = [], []
    for split in splits:
        ids = {image['id']: len(images) + i for i, image in enumerate(split['images'])}
        images += [dict(image, id=ids[image['id']]) for image in split['images']]
        for item in split['annotations']:
            objects.append(dict(item, id=len(objects) + 1, image_id=ids[item['image_id']]))
    return dict(images=images, annotations=objects, categories=split['categories'])


def arm_config(project: Config, folder: Path, threshold: float | None) -> Config:
    """The config of a run on the labels in its folder; without a threshold, nothing is repeated."""
    config = copy.deepcopy(project)
    loader = config.train_dataloader
    loader.dataset.ann_file = str(folder / 'train.json')
    epochs = config.train_cfg.max_epochs
    images = images_of_an_epoch(config)
    if threshold is not None:
        repeat = dict(type='ClassBalancedDataset', oversample_thr=threshold)
        loader.dataset = dict(**repeat, dataset=loader.dataset)
        epochs = round(epochs * images / images_of_an_epoch(config))
    config.train_cfg.update(max_epochs=epochs, val_interval=epochs)
    config.param_scheduler[1].update(end=epochs, T_max=epochs)
    measured = str(folder / 'measured.json')
    config.val_dataloader.dataset.ann_file = measured
    config.val_evaluator.update(ann_file=measured, outfile_prefix=str(folder / 'found'))
    return config


def images_of_an_epoch(config: Config) -> int:
    """The number of training images, counting repeated ones as often as they are seen."""
    with DefaultScope.overwrite_default_scope(config.default_scope), redirect_stdout(StringIO()):
        return len(DATASETS.build(config.train_dataloader.dataset.to_dict()))


def run_arm(config: Config, folder: Path, seed: int, rare: Collection[str]) -> dict[str, float]:
    """Train once in a folder and measure; return the figures, scores in percent."""
    file = folder / 'config.py'
    config.dump(str(file))
    words = ['train', file, '--work-dir', folder / 'work_dir', '--seed', seed]
    minutes = run_command([sys.executable, '-m', 'ptnt_mm', *words], folder / 'train.log')
    truth = read_annotations(folder / 'measured.json')
    scores = list(score_results(truth, folder / 'found.bbox.json', 'bbox').of_classes())
    groups = dict(
        rare=[entry for entry in scores if entry['Class'] in rare],
        others=[entry for entry in scores if entry['Class'] not in rare],
        all=scores,
    )
    figures = {
        f'{score}, {group}': 100 * mean(entry[score] for entry in members)
        for group, members in groups.items()
        for score in ('AP', 'AP50')
    }
    batches = ceil(images_of_an_epoch(config) / config.train_dataloader.batch_size)
    steps = batches * config.train_cfg.max_epochs
    return dict(figures, iterations=steps, **{'CPU minutes': minutes})


def main(words: Sequence[str] | None = None) -> int:
    """Run the tool; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('project', type=Path, help='a project of ptnt new for boxes')
    parser.add_argument('runs', type=Path, help='the folder of the runs')
    parser.add_argument('--rare', nargs='+', required=True, help='names of classes')
    parser.add_argument('--images', type=positive, default=4, help='of each rare class: 4')
    parser.add_argument('--thresholds', nargs='+', type=float, default=[0.25])
    parser.add_argument('--seeds', nargs='+', type=not_negative, default=[0, 1])
    return parser.run(print_scores, words)


def print_scores(args: Namespace) -> None:
    """Train what is missing; print a row for each run, and the means of each arm."""
    train, *others = (args.project / 'labels' / f'{name}.json' for name in SPLITS)
    train = read_json(train)
    measured = join([read_json(file) for file in others if file.exists()])
    rows, arms = [], defaultdict(list)
    for seed in args.seeds:
        for threshold in (None, *args.thresholds):
            arm = 'plain' if threshold is None else f'threshold {threshold:g}'
            folder = (args.runs / f'{arm.replace(" ", "_")}_{seed}').resolve()
            finished = folder / 'figures.json'
            if not finished.exists():
                labels = make_rare(train, args.rare, args.images, seed)
                write_atomically(folder / 'train.json', json.dumps(labels))
                write_atomically(folder / 'measured.json', json.dumps(measured))
                config = arm_config(read_config(args.project), folder, threshold)
                figures = run_arm(config, folder, seed, args.rare)
                write_atomically(finished, json.dumps(figures, indent=1))
            arms[arm].append(read_json(finished))
            rows.append([arm, str(seed), *shown(arms[arm][-1])])
    for arm, runs in arms.items():
        means = {key: mean(run[key] for run in runs) for key in runs[0]}
        rows.append([f'**{arm}**', 'mean', *shown(means)])
    print(markdown(['', 'seed', *means], rows))


def shown(figures: dict[str, float]) -> list[str]:
    """The cells of a row."""
    return [f'{figures[key]:.{0 if key == "iterations" else 1}f}' for key in figures]


if __name__ == '__main__':
    sys.exit(main())
