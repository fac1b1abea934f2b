"""Wrappers around wrappers: a few samples are loaded from every nesting that a host builds."""

import copy
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from mmengine.config import ConfigDict
from mmengine.registry import DATASETS

from ptnt_mm.utils.findings import Severity, of_kind
from ptnt_mm.workbench.check.inspection import check, read_data
from ptnt_mm.workbench.check.trial.setup import load_samples, spread_over, undisturbed
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.view import ConfigView

from .settings_demo import config_on_demo

LOADING = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True)]
MOSAIC = [
    dict(type='Mosaic', img_scale=(64, 64)),
    dict(type='MixUp', img_scale=(64, 64)),
    dict(type='PackDetInputs'),
]
MAPS = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
MOSAIC_OF_MAPS = [
    dict(type='RandomMosaic', prob=1.0, img_scale=(64, 64)),
    dict(type='PackSegInputs'),
]


@DATASETS.register_module()
class Chosen:
    """A user's wrapper, which needs more images than a few, and changes the settings inside."""

    def __init__(self, dataset: dict, numbers: list[int], pipeline: list):
        self.dataset = DATASETS.build(dict(dataset, pipeline=pipeline))
        self.metainfo, self.numbers = self.dataset.metainfo, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, i: int) -> dict:
        return self.dataset[self.numbers[i]]


def joined(*parts: dict) -> dict:
    return dict(type='ConcatDataset', datasets=list(parts))


def repeated(part: dict) -> dict:
    return dict(type='RepeatDataset', times=2, dataset=part)


def balanced(part: dict) -> dict:
    return dict(type='ClassBalancedDataset', oversample_thr=0.5, dataset=part)


def mixed(part: dict, pipeline: list = MOSAIC) -> dict:
    return dict(type='MultiImageMixDataset', dataset=part, pipeline=pipeline)


def fold(part: dict, **settings: object) -> dict:
    return dict(type='KFoldDataset', dataset=part, num_splits=5, **settings)


Wrap = Callable[[dict], dict]

DETECTOR: dict[str, Wrap] = {
    'as voc0712.py': lambda part: repeated(joined(part, part)),
    'a joined part is repeated': lambda part: joined(repeated(part), part),
    'mosaic of balanced': lambda part: mixed(balanced(dict(part, pipeline=LOADING))),
    'mosaic of joined': lambda part: mixed(joined(*[dict(part, pipeline=LOADING)] * 2)),
    'three times': lambda part: repeated(mixed(repeated(dict(part, pipeline=LOADING)))),
    "a user's": lambda part: dict(
        type='Chosen', dataset=part, numbers=[9, 12, 3], pipeline=part['pipeline']
    ),
}
SEGMENTER: dict[str, Wrap] = {
    'repeated and joined': lambda part: repeated(joined(part, repeated(part))),
    'mosaic of joined': lambda part: mixed(
        joined(*[dict(part, pipeline=MAPS)] * 2), MOSAIC_OF_MAPS
    ),
}
CLASSIFIER: dict[str, Wrap] = {
    # Of four images, this would leave none.
    'the first fold': lambda part: fold(part, test_mode=True),
    'folds, balanced and repeated': lambda part: repeated(balanced(fold(part, fold=1))),
}


@pytest.mark.parametrize(
    ('name', 'wrap'),
    [
        pytest.param(name, wrap, id=f'{name}: {what}')
        for name, wraps in (
            ('retinanet', DETECTOR),
            ('semantic_fpn', SEGMENTER),
            ('classifier', CLASSIFIER),
        )
        for what, wrap in wraps.items()
    ],
)
def test_every_nesting_is_built(name: str, wrap: Wrap, made: Path, crops: Path):
    config = config_on_demo(name, made, crops)
    import_host(config.default_scope)
    config.train_dataloader.dataset = ConfigDict(wrap(config.train_dataloader.dataset))
    data, _ = read_data(ConfigView(config), ('train',))
    with undisturbed(ConfigView(config).scope):
        metainfo, samples = load_samples(ConfigView(config).train, data, spread_over)
    assert tuple(metainfo['classes']) == data[0].classes
    assert all('data_samples' in sample for sample in samples)


def test_a_few_images_stand_for_all(made: Path, crops: Path):
    """A large data set inside wrappers is not loaded again."""
    config = config_on_demo('retinanet', made, crops)
    import_host('mmdet')
    config.train_dataloader.dataset = ConfigDict(
        repeated(joined(*[config.train_dataloader.dataset] * 2))
    )
    data, _ = read_data(ConfigView(config), ('train',))
    lengths = []

    def choose(data_set) -> list:
        lengths.append(len(data_set))
        return spread_over(data_set)

    with undisturbed(ConfigView(config).scope):
        load_samples(ConfigView(config).train, data, choose)
    assert lengths == [2 * 2 * len(data[0].sample_entries)]


def test_what_the_host_refuses_is_its_own_error(made: Path, crops: Path):
    config = config_on_demo('retinanet', made, crops)
    import_host('mmdet')
    part = config.train_dataloader.dataset
    config.train_dataloader.dataset = ConfigDict(balanced(repeated(part)))
    data, _ = read_data(ConfigView(config), ('train',))
    with undisturbed(ConfigView(config).scope), pytest.raises(AttributeError, match='get_cat_ids'):
        load_samples(ConfigView(config).train, data, spread_over)


def test_both_kinds_of_joined_data_are_loaded(made: Path, crops: Path):
    """As labelled and unlabelled images, both of which a semi-supervised model needs."""
    config = config_on_demo('retinanet', made, crops)
    import_host('mmdet')
    part = config.train_dataloader.dataset
    pack = [dict(type='PackDetInputs')]
    branches = [dict(type='MultiBranch', branch_field=['a', 'b'], **{name: pack}) for name in 'ab']
    parts = [dict(part, pipeline=[*LOADING, branch]) for branch in branches]
    config.train_dataloader.dataset = ConfigDict(joined(*parts))
    data, _ = read_data(ConfigView(config), ('train',))
    with undisturbed(ConfigView(config).scope):
        _, samples = load_samples(ConfigView(config).train, data, spread_over)
    assert [[b for b in 'ab' if sample['inputs'][b] is not None] for sample in samples] == [
        ['a'],
        ['b'],
    ]


@pytest.mark.parametrize('left_out', [[], ['annotations']], ids=['none', 'no list'])
def test_unlabelled_images_beside_labelled_ones(
    left_out: list[str], made: Path, crops: Path, tmp_path: Path
):
    """As in mmdet's semi-supervised training."""
    config = config_on_demo('retinanet', made, crops)
    labelled = config.train_dataloader.dataset
    content = json.loads(Path(labelled.data_root, labelled.ann_file).read_text())
    content['annotations'] = []
    file = tmp_path / 'unlabelled.json'
    file.write_text(json.dumps({k: v for k, v in content.items() if k not in left_out}))
    unlabelled = copy.deepcopy(labelled)
    unlabelled.update(ann_file=str(file), filter_cfg=dict(filter_empty_gt=False))
    unlabelled.pipeline[1] = dict(type='LoadEmptyAnnotations')
    config.train_dataloader.dataset = ConfigDict(joined(labelled, unlabelled))
    assert not of_kind(check(config, ('train',)), Severity.ERROR)
