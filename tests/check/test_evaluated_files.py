"""Validation on several annotation files: metrics find images by ids that must be distinct."""

import copy
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from mmengine.config import Config, ConfigDict

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.check.inspection import check, check_before_testing
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.demo.dataset import DemoSpec, make_demo_data

from .settings_demo import config_on_demo
from .spoilt import counted

Content = dict[str, list[dict]]


def _shifted(content: Content, by: int = 1000) -> Content:
    images = [dict(image, id=image['id'] + by) for image in content['images']]
    objects = [
        dict(a, id=a['id'] + by, image_id=a['image_id'] + by) for a in content['annotations']
    ]
    return dict(content, images=images, annotations=objects)


def _merged(first: Content, second: Content) -> Content:
    return dict(first, **{key: first[key] + second[key] for key in ('images', 'annotations')})


@pytest.fixture(scope='session')
def files(made: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Annotation files of two data sets, which number their images from 1."""
    other = tmp_path_factory.mktemp('other') / 'other'
    make_demo_data(other, DemoSpec(train=4, val=6, seed=7))
    name = 'annotations/instances_val.json'
    first, second = (json.loads((folder / name).read_text()) for folder in (made, other))
    shifted = _shifted(second)
    as_text = copy.deepcopy(shifted)
    for image in as_text['images']:
        image['id'] = str(image['id'])
    for entry in as_text['annotations']:
        entry['image_id'] = str(entry['image_id'])
    incomplete = _merged(first, shifted)
    incomplete['images'].pop()
    found = {'first': made / name, 'second': other / name}
    for key, content in (
        ('shifted', shifted),
        ('as text', as_text),
        ('merged', _merged(first, shifted)),
        ('copy', first),
        ('incomplete', incomplete),
    ):
        found[key] = other / 'annotations' / f'{key.replace(" ", "_")}.json'
        found[key].write_text(json.dumps(content))
    return found


Change = Callable[[Config, dict[str, Path]], None]


def joined(second: str, measured: str | None, **loader: object) -> Change:
    """Validate on two files; the metric reads one, or none."""

    def change(config: Config, files: dict[str, Path]) -> None:
        part = config.val_dataloader.dataset
        other = dict(part, data_root=f'{files["second"].parents[1]}/', ann_file=str(files[second]))
        other = part if second == 'first' else other
        config.val_dataloader.update(loader)
        config.val_dataloader.dataset = ConfigDict(type='ConcatDataset', datasets=[part, other])
        config.val_evaluator.ann_file = measured and str(files[measured])

    return change


def wrapped(change: Change, times: int) -> Change:
    def changed(config: Config, files: dict[str, Path]) -> None:
        change(config, files)
        inner = config.val_dataloader.dataset
        config.val_dataloader.dataset = ConfigDict(type='RepeatDataset', times=times, dataset=inner)

    return changed


def separate(second: str, *measured: str) -> Change:
    """Measure each file by itself."""

    def change(config: Config, files: dict[str, Path]) -> None:
        joined(second, 'first')(config, files)
        metrics = [dict(config.val_evaluator, ann_file=str(files[key])) for key in measured]
        config.val_evaluator = ConfigDict(
            type='MultiDatasetsEvaluator', metrics=metrics, dataset_prefixes=['a', 'b']
        )

    return change


def in_parts(config: Config, files: dict[str, Path]) -> None:
    part = config.val_dataloader.dataset
    parts = [dict(part, indices=4), dict(part, indices=[4, 5, 6, 7])]
    config.val_dataloader.dataset = ConfigDict(type='ConcatDataset', datasets=parts)


def not_read(measured: str) -> Change:
    """A data set that is read in its own way, as mmdet's panoptic one; the metric has a file."""

    def change(config: Config, files: dict[str, Path]) -> None:
        import_host('mmdet')
        from mmdet.datasets import CocoDataset

        def parse_data_info(self, info: dict) -> dict:
            return CocoDataset.parse_data_info(self, info)

        cls = type('Panoptic', (CocoDataset,), dict(parse_data_info=parse_data_info))
        config.val_dataloader.dataset.type = cls
        config.val_evaluator.ann_file = str(files[measured])

    return change


METRIC, DATA = 'val_evaluator', 'val_dataloader.dataset'

FAULTS: dict[str, tuple[Change, str, tuple[str, ...]]] = {
    'equal ids': (joined('second', 'first'), METRIC, ('first', 'second')),
    'equal ids, the second is measured': (
        joined('second', 'second'),
        METRIC,
        ('first', 'second'),
    ),
    'equal ids, measured without a file': (joined('second', None), METRIC, ('first', 'second')),
    'equal ids inside a wrapper': (
        wrapped(joined('second', 'first'), 1),
        METRIC,
        ('first', 'second'),
    ),
    'other ids': (joined('shifted', 'first'), f'{METRIC}.ann_file', ('first', 'shifted')),
    'ids as text': (joined('as text', 'first'), f'{METRIC}.ann_file', ('first', 'as text')),
    'an image is missing': (
        joined('shifted', 'incomplete'),
        f'{METRIC}.ann_file',
        ('incomplete', 'shifted'),
    ),
    'other images, not read': (not_read('second'), f'{METRIC}.ann_file', ('first', 'second')),
    'one file twice': (joined('first', 'first'), METRIC, ('first',)),
    'repeated': (wrapped(lambda config, files: None, 2), DATA, ()),
    'a metric too few': (separate('second', 'first'), METRIC, ()),
    'metrics mixed up': (
        separate('second', 'second', 'first'),
        f'{METRIC}.ann_file',
        ('first', 'second'),
    ),
}
"""A change of the config; the subject of the error, and the files that it names."""

CORRECT: dict[str, Change] = {
    'merged': joined('shifted', 'merged'),
    'merged, in batches': joined('shifted', 'merged', batch_size=2),
    'merged, inside a wrapper': wrapped(joined('shifted', 'merged'), 1),
    'each by itself': separate('second', 'first', 'second'),
    'parts of one file': in_parts,
    'two files of the same images': not_read('copy'),
}


@pytest.fixture
def config(made: Path, crops: Path) -> Config:
    config = config_on_demo('retinanet', made, crops)
    config.test_dataloader = config.test_cfg = config.test_evaluator = None
    return config


@pytest.mark.parametrize('name', FAULTS)
def test_predictions_are_not_compared_with_other_images(
    name: str, config: Config, files: dict[str, Path]
):
    change, where, named = FAULTS[name]
    change(config, files)
    errors = [f for f in check(config, ('val',), thorough=False) if f.severity is Severity.ERROR]
    assert {finding.where for finding in errors} == {where}
    assert all(str(files[key]) in errors[0].what for key in named)


@pytest.mark.parametrize('name', CORRECT)
def test_sound_evaluations_are_quiet(name: str, config: Config, files: dict[str, Path]):
    CORRECT[name](config, files)
    assert counted(check(config, ('val',), thorough=False)) == []


def test_a_test_on_several_files_is_refused_before_it_begins(
    config: Config, files: dict[str, Path]
):
    joined('second', 'first')(config, files)
    for key in ('dataloader', 'cfg', 'evaluator'):
        config[f'test_{key}'] = config[f'val_{key}']
    config.test_cfg = dict(type='TestLoop')
    with pytest.raises(UserError, match=str(files['second'])):
        check_before_testing(ConfigView(config))


def test_categories_in_another_order_are_refused_before_a_test(
    config: Config, files: dict[str, Path], tmp_path: Path
):
    content = json.loads(files['first'].read_text())
    content['categories'].reverse()
    file = tmp_path / 'reversed.json'
    file.write_text(json.dumps(content))
    config.test_dataloader = copy.deepcopy(config.val_dataloader)
    config.test_dataloader.dataset.ann_file = str(file)
    config.test_evaluator = dict(config.val_evaluator, ann_file=str(file))
    config.test_cfg = dict(type='TestLoop')
    with pytest.raises(UserError, match='cup, crate, coin, ball'):
        check_before_testing(ConfigView(config))
