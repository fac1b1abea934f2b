"""Evaluators: the same annotations as their data sets, and all that pycocotools needs in them."""

from collections.abc import Iterator
from pathlib import Path

from mmengine.config import Config

from ptnt_mm.check.detection.data import DetectionData
from ptnt_mm.engine.config import kind_of
from ptnt_mm.engine.data_files import DataSet, evaluators
from ptnt_mm.utils.findings import Finding, error, sound, warning
from ptnt_mm.utils.text import some


def check_evaluation(data: list[DetectionData], config: Config) -> Iterator[Finding]:
    """Look at the evaluators of the splits, and at what they read."""
    for split in ('val', 'test'):
        of_split = [one for one in data if split in one.splits and one.file is not None]
        if len(of_split) != 1:
            continue
        files = _annotation_files(config, split)
        found = [*_another_file(split, of_split[0], files)]
        yield from found or [sound(split, f'measured on {of_split[0].file.path}')] * bool(files)
    for one in data:
        if one.file is not None and not one.trains:
            yield from _for_pycocotools(one)


def _annotation_files(config: Config, split: str) -> list[Path]:
    """The annotation files of a split's COCO evaluators."""
    found = evaluators(config, split)
    named = [one.get('ann_file') for one in found if kind_of(one).startswith('Coco')]
    paths = [DataSet({}, ()).path(name) for name in named]
    return [path for path in paths if path is not None]


def _another_file(split: str, data: DetectionData, files: list[Path]) -> Iterator[Finding]:
    for file in files:
        if file.resolve() != data.file.path.resolve():
            yield error(
                split,
                f'{split}_evaluator.ann_file is {file}, the data set reads {data.file.path}',
                'predictions would be measured against other images: give both the same file',
            )
        elif data.loaded is not None and len(data.loaded.used) < data.total:
            yield warning(
                split,
                f'{len(data.loaded.used)} of the {data.total} images of {file} are loaded',
                'the others count as images in which nothing was found: make a file of those alone',
            )


def _for_pycocotools(data: DetectionData) -> Iterator[Finding]:
    """What evaluation reads beyond what training does."""
    annotations = data.file.annotations
    without = [
        f'id {annotation["id"]}' for annotation in annotations if 'iscrowd' not in annotation
    ]
    if without:
        what = f'{len(without)} of {len(annotations)} annotations without iscrowd: {some(without)}'
        yield error(data.name, what, 'evaluation breaks off at them: write "iscrowd": 0')
    if any(annotation['id'] == 0 for annotation in annotations):
        yield warning(
            data.name,
            'one annotation has the id 0, which pycocotools takes for "not found"',
            'its object never counts as found: number annotations from 1',
        )
