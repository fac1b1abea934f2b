"""Rare classes made from common ones, and the two ways to train on them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from measure_rare import arm_config, images_of_an_epoch, join, make_rare
from mmengine.config import Config

from ptnt_mm.utils.errors import UserError


@pytest.fixture
def labels() -> dict[str, Any]:
    """Thirty images: a cat in each, a dog in every third, a fox in every fifth."""
    images = [dict(id=i, file_name=f'{i}.png', width=40, height=30) for i in range(30)]
    objects = [
        dict(image_id=i, category_id=category, bbox=[1, 2, 8, 9], area=72, iscrowd=0)
        for i in range(30)
        for category, step in ((5, 1), (7, 3), (9, 5))
        if i % step == 0
    ]
    objects = [dict(item, id=i) for i, item in enumerate(objects, start=1)]
    names = {5: 'cat', 7: 'dog', 9: 'fox'}
    categories = [dict(id=number, name=name) for number, name in names.items()]
    return dict(images=images, annotations=objects, categories=categories)


def images_with(labels: dict[str, Any]) -> Counter:
    return Counter(item['category_id'] for item in labels['annotations'])


@pytest.mark.parametrize('seed', range(5))
def test_rare_classes_stay_in_a_few_images(labels: dict[str, Any], seed: int):
    rare = make_rare(labels, ['dog', 'fox'], 2, seed)
    found = images_with(rare)
    assert found[7] == found[9] == 2
    # The 16 images without a dog and a fox are all kept, and no image loses an object.
    assert found[5] == len(rare['images']) in (18, 19, 20)
    kept = {image['id'] for image in rare['images']}
    assert [item for item in labels['annotations'] if item['image_id'] in kept] == (
        rare['annotations']
    )
    assert make_rare(labels, ['dog', 'fox'], 2, seed) == rare


def test_seeds_keep_other_images(labels: dict[str, Any]):
    assert len({str(make_rare(labels, ['fox'], 2, seed)['images']) for seed in range(5)}) > 1


@pytest.mark.parametrize(('rare', 'images'), [(['wolf'], 2), (['dog'], 11)])
def test_what_cannot_be_made(labels: dict[str, Any], rare: list[str], images: int):
    with pytest.raises(UserError, match=rare[0]):
        make_rare(labels, rare, images, 0)


def test_joined_splits_have_ids_of_their_own(labels: dict[str, Any]):
    joined = join([labels, make_rare(labels, ['dog'], 1, 0)])
    for kind in ('images', 'annotations'):
        ids = [item['id'] for item in joined[kind]]
        assert len(set(ids)) == len(ids) > len(labels[kind])
    named = {image['id']: image['file_name'] for image in joined['images']}
    assert images_with(joined)[7] == 11
    dogs = [named[i['image_id']] for i in joined['annotations'] if i['category_id'] == 7]
    assert dogs[:10] == [f'{i}.png' for i in range(0, 30, 3)] and dogs[10] in dogs[:10]


def test_repeated_images_make_fewer_epochs(labels: dict[str, Any], tmp_path: Path):
    rare = make_rare(labels, ['fox'], 1, 0)  # 25 images
    (tmp_path / 'train.json').write_text(json.dumps(rare))
    data = dict(type='CocoDataset', data_prefix=dict(img='images'), pipeline=[], ann_file='')
    data['metainfo'] = dict(classes=('cat', 'dog', 'fox'))
    project = Config(
        dict(
            default_scope='mmdet',
            train_dataloader=dict(dataset=data),
            train_cfg=dict(max_epochs=12, val_interval=1),
            param_scheduler=[dict(type='LinearLR'), dict(end=12, T_max=12)],
            val_dataloader=dict(dataset=data),
            val_evaluator=dict(type='CocoMetric', ann_file=''),
        )
    )
    plain, balanced = (arm_config(project, tmp_path, threshold) for threshold in (None, 0.25))
    assert images_of_an_epoch(plain) == 25
    # The root of 0.25 / (1 / 25) is 2.5, so the fox is seen three times; the dogs are common.
    assert images_of_an_epoch(balanced) == 27
    assert plain.train_cfg.max_epochs == 12 and balanced.train_cfg.max_epochs == 11
    assert balanced.param_scheduler[1].end == balanced.param_scheduler[1].T_max == 11
    assert project.train_cfg.max_epochs == 12
