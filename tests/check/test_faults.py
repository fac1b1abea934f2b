"""Every fault that a data set or a config may have, planted one at a time in the demo set."""

import json

import cv2
import pytest

from ptnt_mm.utils.findings import Severity

from .spoilt import (
    NOT_COMPLETED,
    TRAIN_SET,
    Demo,
    Plant,
    all_of,
    assert_one_names,
    changed,
    counted,
    file_of,
    own,
    settings,
    with_exif,
)

ERROR, WARNING = Severity.ERROR, Severity.WARNING
CLASSES = ('ball', 'coin', 'crate', 'cup')
HEAD = 'model.bbox_head.num_classes'
SCALE = 'model.data_preprocessor.'


def test_nothing_is_found_in_the_intact_set(demo: Demo):
    assert counted(demo.findings('images', 'heads', 'weights', 'trial')) == []


def test_nothing_is_found_in_the_intact_set_with_masks(demo: Demo):
    demo.name = 'demo_mask_rcnn_ptnt_ti'
    assert counted(demo.findings('heads')) == []


def _all(split: str, kind: str, **changes: object) -> Plant:
    """Change all entries of a kind."""
    return lambda demo: demo.edit(split, lambda c: [entry.update(changes) for entry in c[kind]])


def _without(split: str, kind: str, key: str) -> Plant:
    """Take a key out of the second entry of a kind."""
    return lambda demo: demo.edit(split, lambda content: content[kind][1].pop(key))


def _rename_everywhere(demo: Demo) -> None:
    demo.edit_both(lambda content: content['categories'][1].update(name='coins'))


def _reverse_categories(demo: Demo) -> None:
    demo.edit_both(lambda content: content['categories'].reverse())


def _double_category(demo: Demo) -> None:
    demo.edit('train', lambda content: content['categories'].append(dict(id=9, name='cup')))


def _forget_class(demo: Demo) -> None:
    def forget(content: dict) -> None:
        content['annotations'] = [a for a in content['annotations'] if a['category_id'] != 3]

    demo.edit('train', forget)


def _as_corners(demo: Demo) -> None:
    def turn(content: dict) -> None:
        for entry in content['annotations']:
            x, y, width, height = entry['bbox']
            entry['bbox'] = [x, y, x + width, y + height]

    demo.edit('train', turn)


def _as_fractions(demo: Demo) -> None:
    def scale(content: dict) -> None:
        for entry in content['annotations']:
            entry['bbox'] = [value / 1000 for value in entry['bbox']]

    demo.edit('train', scale)


def _repeat(kind: str) -> Plant:
    return lambda demo: demo.edit('train', lambda content: content[kind].append(content[kind][0]))


def _truncate(demo: Demo) -> None:
    file = demo.image('train', 3)
    file.write_bytes(file.read_bytes()[:-4000])


def _shrink(demo: Demo) -> None:
    file = str(demo.image('val', 3))
    cv2.imwrite(file, cv2.imread(file)[:50, :60])


def _train_is_val(demo: Demo) -> None:
    for split in ('val', 'test'):
        dataset = f'{split}_dataloader.dataset.'
        demo.options[dataset + 'ann_file'] = 'annotations/instances_train.json'
        demo.options[dataset + 'data_prefix.img'] = 'train/'
        demo.options[f'{split}_evaluator.ann_file'] = str(demo.file('train'))


def _no_annotations(demo: Demo) -> None:
    demo.edit('train', lambda content: content.pop('annotations'))


FAULTS = {
    # Files
    'annotation file missing': (
        own(ann_file='annotations/instances_trian.json'), ERROR, 'train', 'instances_trian.json'
    ),
    'image folder missing': (
        settings({TRAIN_SET + 'data_prefix.img': 'trian/'}), ERROR, 'train', 'demo/trian'
    ),
    'not JSON': (
        lambda demo: demo.file('train').write_text('{"images": ['),
        ERROR, 'annotation file', 'instances_train.json',
    ),
    'not COCO': (_no_annotations, ERROR, 'annotation file', 'instances_train.json'),
    'image folder not named': (
        own(data_prefix=dict(_delete_=True, img_path='train/')), ERROR, 'train', 'data_prefix'
    ),
    # Images
    'image missing': (
        lambda demo: demo.image('train', 3).unlink(), ERROR, 'train', '1 of 16 images'
    ),
    'image with another ending': (
        all_of(
            changed('train', 'images', file_name='Second.jpg'),
            lambda demo: demo.image('train', 2).rename(demo.folder / 'train' / 'SECOND.jpeg'),
        ),
        ERROR, 'train', 'there is SECOND.jpeg',
    ),
    'folder twice in the path': (
        lambda demo: demo.edit(
            'train', lambda c: [i.update(file_name=f'train/{i["file_name"]}') for i in c['images']]
        ),
        ERROR, 'train', 'train/train/000001.jpg',
    ),
    'image truncated': (_truncate, ERROR, 'train', '000003.jpg'),
    'file that is not an image': (
        lambda demo: demo.image('val', 3).write_text('no picture'),
        ERROR, 'val and test', '000003.jpg',
    ),
    'image of a different size': (_shrink, ERROR, 'val and test', '000003.jpg is 60x50'),
    'image turned by EXIF': (file_of(with_exif(6)), ERROR, 'train', '000003.jpg is 192x256'),
    'images in both splits': (_train_is_val, WARNING, 'val and test', '16 of 16 images'),
    # Form
    'no height': (
        _without('train', 'images', 'height'),
        ERROR, 'instances_train.json', "'height': nothing in 000002.jpg",
    ),
    'no iscrowd': (
        _without('val', 'annotations', 'iscrowd'), ERROR, 'val and test', 'iscrowd: id 2'
    ),
    'image ids twice': (_repeat('images'), ERROR, 'instances_train.json', '1 (2 times)'),
    'annotation ids twice': (_repeat('annotations'), ERROR, 'instances_train.json', '1 (2 times)'),
    'unknown image': (
        changed('train', 'annotations', image_id=999), ERROR, 'instances_train.json', '999'
    ),
    'unknown category': (
        changed('train', 'annotations', category_id=77), ERROR, 'instances_train.json', '77'
    ),
    'annotation 0': (changed('val', 'annotations', id=0), WARNING, 'val and test', 'id 0'),
    # Classes
    'category misspelt': (_rename_everywhere, ERROR, 'train', "'coin'"),
    'classes omitted': (
        own(metainfo=dict(_delete_=True)), ERROR, 'train', 'ball, coin, crate, cup'
    ),
    'classes of old': (
        own(metainfo=dict(_delete_=True, CLASSES=CLASSES)), ERROR, 'train', 'metainfo.CLASSES'
    ),
    'no comma': (own(metainfo=dict(classes='ball')), ERROR, 'train', "'ball'"),
    'class in capitals': (
        own(metainfo=dict(classes=(*CLASSES, 'CUP'))), WARNING, 'train', "'cup', 'CUP'"
    ),
    'class twice': (own(metainfo=dict(classes=(*CLASSES, 'cup'))), ERROR, 'train', 'cup'),
    'other order': (_reverse_categories, ERROR, 'train', 'cup, crate, coin, ball'),
    'order of val': (
        settings({'val_dataloader.dataset.metainfo': dict(classes=CLASSES[::-1])}),
        ERROR, 'val', 'cup, crate, coin, ball',
    ),
    'category twice': (_double_category, ERROR, 'train', 'cup'),
    'class too few': (own(metainfo=dict(classes=CLASSES[:3])), WARNING, 'train', "'cup'"),
    'class without objects': (_forget_class, WARNING, 'train', 'crate'),
    # Model
    'heads of another number': (settings({HEAD: 80}), ERROR, 'model.bbox_head.num_classes', '80'),
    # Filtering
    'all images too small': (
        settings({TRAIN_SET + 'filter_cfg.min_size': 1000}), ERROR, 'train', "'min_size': 1000"
    ),
    'no whole batch': (
        settings({'train_dataloader.batch_size': 32, 'train_dataloader.drop_last': True}),
        ERROR, 'train', 'batch of 32',
    ),
    'boxes that are not loaded': (
        settings({TRAIN_SET + 'pipeline.1.with_bbox': False}), ERROR, 'train', 'boxes'
    ),
    'training in test mode': (own(test_mode=True), WARNING, 'train', 'test_mode=True'),
    # Boxes
    'box of negative width': (
        changed('train', 'annotations', bbox=[50, 50, -20, 30]),
        ERROR, 'train', 'id 2 [50, 50, -20, 30] in 000001.jpg',
    ),
    'box that is NaN': (
        changed('train', 'annotations', bbox=[50, 50, float('nan'), 20]),
        ERROR, 'train', 'id 2 [50, 50, nan, 20]',
    ),
    'box outside': (
        changed('val', 'annotations', bbox=[5000, 50, 20, 20]),
        ERROR, 'val and test', 'id 2 [5000, 50, 20, 20]',
    ),
    'boxes as corners': (_as_corners, ERROR, 'train', '44 of 58 boxes'),
    'boxes as fractions': (_as_fractions, ERROR, 'train', '58 boxes'),
    'no areas': (_all('train', 'annotations', area=0), ERROR, 'train', '58 of 58 areas'),
    'box of no height': (
        changed('train', 'annotations', bbox=[50, 50, 20, 0]),
        WARNING, 'train', 'id 2 [50, 50, 20, 0]',
    ),
    'box that leaves its image': (
        changed('train', 'annotations', bbox=[5, 5, 900, 20]),
        WARNING, 'train', 'id 2 [5, 5, 900, 20]',
    ),
    # Evaluation
    "another evaluator's file": (
        lambda demo: demo.options.update({'val_evaluator.ann_file': str(demo.file('train'))}),
        ERROR, 'val_evaluator.ann_file', 'instances_train.json',
    ),
    'masks measured without a head': (
        settings({'val_evaluator.metric': ['bbox', 'segm']}), ERROR, 'val', "'segm'"
    ),
    # Recipe
    'rate that is not a number': (
        settings({'optim_wrapper.optimizer.lr': '1e-3'}), ERROR, 'Learning rate', "'1e-3'"
    ),
    'weights missing': (
        settings({'model.backbone.init_cfg': dict(type='Pretrained', checkpoint='no.pth')}),
        ERROR, 'model.backbone', 'no.pth',
    ),
    'stem frozen': (
        settings({'model.backbone.norm_eval': True}), ERROR, 'model.backbone', 'norm_eval'
    ),
    'mean and std for images from 0 to 1': (
        settings({SCALE + 'mean': [0.485, 0.456, 0.406], SCALE + 'std': [0.229, 0.224, 0.225]}),
        ERROR, 'model.data_preprocessor', '[0.485, 0.456, 0.406]',
    ),
    'another batch': (
        settings({'train_dataloader.batch_size': 2}), WARNING, 'Learning rate', '0.0005'
    ),
    'rate of SGD': (
        settings({'optim_wrapper.optimizer.lr': 0.02}), WARNING, 'Learning rate', '0.02'
    ),
    'no mean': (settings({SCALE + 'mean': None}), WARNING, 'model.data_preprocessor', 'mean=None'),
}  # fmt: skip
"""Planted faults; the severity and the subject of the finding, and a value that it names."""


@pytest.mark.parametrize('name', FAULTS)
def test_a_planted_fault_is_found(demo: Demo, name: str):
    plant, severity, where, value = FAULTS[name]
    plant(demo)
    assert_one_names(demo.findings('images'), severity, where, value)


MASK_FAULTS = {
    'no mask': (_without('train', 'annotations', 'segmentation'), ERROR, 'train', 'id 2'),
    'empty mask': (changed('train', 'annotations', segmentation=[]), ERROR, 'train', 'id 2'),
    'no mask to measure': (
        _without('val', 'annotations', 'segmentation'), ERROR, 'val and test', 'id 2'
    ),
    'two points': (
        changed('train', 'annotations', segmentation=[[1, 2, 3, 4]]), WARNING, 'train', 'id 2'
    ),
    'turned run lengths': (
        changed('train', 'annotations', segmentation=dict(counts='x', size=[1, 2])),
        ERROR, 'train', 'id 2',
    ),
    'masks that are not loaded': (
        settings({TRAIN_SET + 'pipeline.1.with_mask': False}),
        ERROR, 'train', 'model.roi_head.mask_head',
    ),
    'another number of mask classes': (
        settings({'model.roi_head.mask_head.num_classes': 80}),
        ERROR, 'model.roi_head.mask_head.num_classes', '80',
    ),
}  # fmt: skip
"""The same for object masks and a model with a mask head."""


@pytest.mark.parametrize('name', MASK_FAULTS)
def test_a_planted_fault_of_masks_is_found(demo: Demo, name: str):
    plant, severity, where, value = MASK_FAULTS[name]
    demo.name = 'demo_mask_rcnn_ptnt_ti'
    plant(demo)
    assert_one_names(demo.findings(), severity, where, value)


def test_broken_boxes_of_masks_are_no_matter_without_a_mask_head(demo: Demo):
    _without('train', 'annotations', 'segmentation')(demo)
    assert counted(demo.findings()) == []


def test_masks_are_compared_with_boxes_as_mmdet_clips_them(demo: Demo):
    demo.name = 'demo_mask_rcnn_ptnt_ti'
    mask = [[0, 10, 40, 10, 40, 60, 0, 60]]
    changed('train', 'annotations', bbox=[-60, 10, 100, 50], segmentation=mask)(demo)
    (found,) = counted(demo.findings())
    assert 'boxes partly outside their images' in found.what


@pytest.mark.parametrize('content', [{}, [], None, 3, {'images': 1}, {'images': [3], 'a': {}}])
def test_no_content_of_a_file_causes_a_traceback(demo: Demo, content: object):
    demo.file('train').write_text(json.dumps(content))
    said = '\n'.join(map(str, counted(demo.findings())))
    assert "not in COCO's format" in said and NOT_COMPLETED not in said


@pytest.mark.parametrize('kind', ['images', 'annotations', 'categories'])
@pytest.mark.parametrize('value', [None, 3, [], {}, 'text', -1, float('inf')])
def test_no_value_of_an_entry_causes_a_traceback(demo: Demo, kind: str, value: object):
    def spoil(content: dict) -> None:
        content[kind].append(value)
        for i, key in enumerate(list(content[kind][0])):
            content[kind][i][key] = value

    demo.edit('train', spoil)
    said = '\n'.join(map(str, counted(demo.findings())))
    assert said and NOT_COMPLETED not in said


def test_one_fault_is_one_finding(demo: Demo):
    demo.options[HEAD] = 80
    assert len(counted(demo.findings())) == 1


def test_heads_are_not_compared_with_invalid_class_names(demo: Demo):
    demo.set(metainfo=dict(classes='ball'))
    assert not any('num_classes: is' in str(finding) for finding in demo.findings())
