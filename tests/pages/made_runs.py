"""Artificial work dirs with data and predictions, without a model."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from pycocotools import mask as coco_mask

from ptnt_mm.workbench.pages.report.training_run import read_run

CLASSES = ('ball', 'cup')

# As (image, class, box); two images of 100 x 100 pixels. The second ball of image 2 is not found.
TRUTHS = (
    (1, 'ball', (0, 0, 10, 10)),
    (1, 'cup', (50, 50, 20, 20)),
    (2, 'ball', (0, 0, 20, 20)),
    (2, 'ball', (60, 60, 20, 20)),
)

# One error of each kind next to one that is correct.
FOUND = (
    (1, 'ball', (0, 0, 10, 10), 0.9),  # correct
    (1, 'ball', (0, 0, 10, 10), 0.8),  # duplicate
    (1, 'ball', (50, 50, 20, 20), 0.7),  # classification: it is the cup
    (2, 'ball', (0, 0, 20, 8), 0.6),  # localisation: an IoU of 0.4
    (2, 'cup', (10, 0, 20, 20), 0.5),  # both: an IoU of 1/3 with a ball
    (2, 'ball', (90, 0, 5, 5), 0.4),  # background
)


def annotations(truths=TRUTHS, classes=CLASSES, images=2, crowds=()) -> dict:
    """A COCO file; ``crowds`` has the indices of crowd objects."""
    entries = [
        dict(
            id=number,
            image_id=image,
            category_id=1 + classes.index(name),
            bbox=list(box),
            area=box[2] * box[3],
            segmentation=[_polygon(box)],
            iscrowd=int(number - 1 in crowds),
        )
        for number, (image, name, box) in enumerate(truths, start=1)
    ]
    return dict(
        images=[
            dict(id=i, file_name=f'{i}.jpg', width=100, height=100) for i in range(1, images + 1)
        ],
        annotations=entries,
        categories=[dict(id=i, name=name) for i, name in enumerate(classes, start=1)],
    )


def results(kind: str, found=FOUND, classes=CLASSES) -> list[dict]:
    """Output of mmdet's CocoMetric for detections; masks come with their boxes."""
    entries = [
        dict(image_id=image, category_id=1 + classes.index(name), bbox=list(box), score=score)
        for image, name, box, score in found
    ]
    if kind == 'segm':
        for entry in entries:
            (run_lengths,) = coco_mask.frPyObjects([_polygon(entry['bbox'])], 100, 100)
            entry['segmentation'] = dict(size=[100, 100], counts=run_lengths['counts'].decode())
    return entries


def make_detector(folder: Path, name: str, kinds: tuple[str, ...] = ('bbox',)) -> Path:
    """A work dir of a detector whose predictions are newer than its checkpoint."""
    data = folder / 'data'
    data.mkdir(exist_ok=True)
    (data / 'val.json').write_text(json.dumps(annotations()))
    for image in (1, 2):
        Image.new('RGB', (100, 100), (200, 100 * image, 0)).save(data / f'{image}.jpg')
    evaluator = dict(type='CocoMetric', ann_file=str(data / 'val.json'), metric=list(kinds))
    data_set = dict(
        type='CocoDataset',
        data_root=str(data),
        ann_file='val.json',
        metainfo=dict(classes=CLASSES),
    )
    metrics = [{f'coco/{kind}_mAP': 0.1 * epoch for kind in kinds} for epoch in (1, 2)]
    work_dir = _make_run(folder / name, 'mmdet', data_set, evaluator, metrics, epochs=True)
    for kind in kinds:
        (work_dir / f'predictions.{kind}.json').write_text(json.dumps(results(kind)))
    return work_dir


def report_of_detector(
    folder: Path, found: object, kind: str = 'bbox', truth: object = None, **changes: object
) -> Any:
    """The report of results; the ground truth and settings may be others."""
    work_dir = make_detector(folder, 'run', (kind,))
    if truth is not None:
        (folder / 'data' / 'val.json').write_text(json.dumps(truth))
    (work_dir / f'predictions.{kind}.json').write_text(json.dumps(found))
    run = read_run(work_dir, 'run')
    run.config.merge_from_dict(changes)
    return run.read_report()


def make_segmenter(
    folder: Path,
    name: str,
    truth: np.ndarray,
    found: np.ndarray,
    classes: Sequence[str] = CLASSES,
    **data,
) -> Path:
    """A work dir of a segmenter.

    Args:
        folder: Where it and its data go.
        name: Its name.
        truth: (images, H, W) uint8, as in the files of the ground truth.
        found: (images, H, W) uint8, as mmseg writes its maps.
        classes: The names of its classes.
        **data: More settings of the data set.
    """
    root, work_dir = folder / f'{name}_data', folder / name
    for part in ('images', 'masks'):
        (root / part).mkdir(parents=True)
    (work_dir / 'predictions').mkdir(parents=True)
    for i, (mask, map_) in enumerate(zip(truth, found, strict=True)):
        Image.new('RGB', mask.shape[::-1], (90, 90, 90)).save(root / 'images' / f'{i}.jpg')
        Image.fromarray(mask).save(root / 'masks' / f'{i}.png')
        Image.fromarray(map_).save(work_dir / 'predictions' / f'{i}.png')
    data_set = dict(
        type='BaseSegDataset',
        data_root=str(root),
        data_prefix=dict(img_path='images', seg_map_path='masks'),
        metainfo=dict(classes=classes),
        pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')],
        **data,
    )
    evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
    metrics = [dict(aAcc=80.0, mIoU=60.0, mAcc=70.0)]
    return _make_run(work_dir, 'mmseg', data_set, evaluator, metrics, epochs=False)


def _make_run(
    work_dir: Path, scope: str, data_set: dict, evaluator: dict, metrics: list[dict], epochs: bool
) -> Path:
    started = work_dir / '20260102_030405'
    (started / 'vis_data').mkdir(parents=True)
    lines = []
    for step, evaluation in enumerate(metrics, start=1):
        training = dict(loss=1 / step, loss_cls=0.5 / step, loss_bbox=0.5 / step, lr=0.1)
        training |= dict(epoch=step) if epochs else {}
        lines += [dict(training, time=30.0, memory=2048, step=10 * step)]
        lines += [dict(evaluation, step=step if epochs else 10 * step)]
    text = ''.join(json.dumps(line) + '\n' for line in lines)
    scalars = started / 'vis_data' / 'scalars.json'
    scalars.write_text(text)
    age(scalars, 50)  # predictions come after the training
    (started / f'{started.name}.log').write_text(
        '2026/01/02 - mmengine - INFO - Versions: torch 2.15\nother lines\n'
    )
    config = dict(
        default_scope=scope,
        model=dict(type='Net', backbone=dict(type='PyramidTNT', arch='tiny')),
        test_dataloader=dict(dataset=data_set),
        test_evaluator=evaluator,
        work_dir=str(work_dir),
    )
    written = ''.join(f'{key} = {value!r}\n' for key, value in config.items())
    (started / 'vis_data' / 'config.py').write_text(written)
    return work_dir


def age(file: Path, seconds: float) -> None:
    """Make a file older."""
    changed = file.stat().st_mtime - seconds
    os.utime(file, (changed, changed))


def _polygon(box) -> list[float]:
    x, y, width, height = box
    return [x, y, x + width, y, x + width, y + height, x, y + height]
