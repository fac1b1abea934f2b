"""Every fault that a data set or a config may have, planted one at a time in the demo set."""

import json

import cv2
import pytest

from ptnt_mm.check.failed_steps import NOT_COMPLETED
from ptnt_mm.utils.findings import Severity

from .spoilt import TRAIN_SET, Demo, Plant, assert_named, counted, file_of, own, settings, with_exif

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


def _one(split: str, kind: str, **changes: object) -> Plant:
    """Change the second entry of a kind."""
    return lambda demo: demo.edit(split, lambda content: content[kind][1].update(changes))


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


ERRORS = {
    # Files
    'annotation file missing': (
        own(ann_file='annotations/instances_trian.json'),
        "instances_trian.json does not exist; nearest is 'instances_train.json'",
    ),
    'image folder missing': (
        settings({TRAIN_SET + 'data_prefix.img': 'trian/'}),
        "demo/trian does not exist; nearest is 'train'",
    ),
    'not JSON': (
        lambda demo: demo.file('train').write_text('{"images": ['),
        'instances_train.json is not JSON, or is truncated',
    ),
    'not COCO': (_no_annotations, "not in COCO's format: it has no list annotations"),
    'image folder not named': (
        own(data_prefix=dict(_delete_=True, img_path='train/')),
        'data_prefix has no folder of images',
    ),
    # Images
    'image missing': (
        lambda demo: demo.image('train', 3).unlink(),
        '1 of 16 images not found … 000003.jpg',
    ),
    'image with another ending': (
        lambda demo: demo.image('train', 3).rename(demo.image('train', 3).with_suffix('.jpeg')),
        'there is 000003.jpeg instead',
    ),
    'folder twice in the path': (
        lambda demo: demo.edit(
            'train', lambda c: [i.update(file_name=f'train/{i["file_name"]}') for i in c['images']]
        ),
        '16 of 16 images not found … train/train/000001.jpg',
    ),
    'image truncated': (_truncate, '1 of 16 images not readable … 000003.jpg ('),
    'file that is not an image': (
        lambda demo: demo.image('val', 3).write_text('no picture'),
        '000003.jpg (not an image)',
    ),
    'image of a different size': (
        _shrink,
        'not of the annotated size … 000003.jpg is 60x50, annotated',
    ),
    'image turned by EXIF': (file_of(with_exif(6)), 'rotated by its EXIF data, annotated'),
    # Form
    'no height': (
        _without('train', 'images', 'height'),
        "1 of 16 images without a usable 'height': nothing in 000002.jpg",
    ),
    'no iscrowd': (_without('val', 'annotations', 'iscrowd'), 'annotations without iscrowd: id 2'),
    'image ids twice': (_repeat('images'), 'ids of several images: 1 (2 times)'),
    'annotation ids twice': (_repeat('annotations'), 'ids of several annotations: 1 (2 times)'),
    'unknown image': (
        _one('train', 'annotations', image_id=999),
        'annotations whose image_id is not in the file: 999',
    ),
    'unknown category': (
        _one('train', 'annotations', category_id=77),
        'annotations whose category_id is not in the file: 77',
    ),
    # Classes
    'category misspelt': (_rename_everywhere, 'names that are not categories of'),
    'classes omitted': (
        own(metainfo=dict(_delete_=True)),
        "metainfo has no classes, and of the 80 of the data set's class 79 are not in",
    ),
    'classes of old': (
        own(metainfo=dict(_delete_=True, CLASSES=CLASSES)),
        'nothing reads metainfo.CLASSES',
    ),
    'no comma': (own(metainfo=dict(classes='ball')), "is the text 'ball', not a tuple"),
    'class twice': (
        own(metainfo=dict(classes=(*CLASSES, 'cup'))),
        'metainfo.classes has duplicate names: cup',
    ),
    'other order': (
        _reverse_categories,
        'order of the categories is cup, crate, coin, ball, that of metainfo.classes is ball, coin',
    ),
    'order of val': (
        settings({'val_dataloader.dataset.metainfo': dict(classes=CLASSES[::-1])}),
        'the classes are cup, crate, coin, ball; those of train are ball, coin, crate, cup',
    ),
    'category twice': (_double_category, 'several categories'),
    # Model
    'heads of another number': (
        settings({HEAD: 80}),
        'bbox_head.num_classes: is 80, the data has 4 classes',
    ),
    # Filtering
    'all images too small': (
        settings({TRAIN_SET + 'filter_cfg.min_size': 1000}),
        "'min_size': 1000",
    ),
    'no whole batch': (
        settings({'train_dataloader.batch_size': 32, 'train_dataloader.drop_last': True}),
        '16 images do not fill a batch of 32, and drop_last=True drops the rest',
    ),
    'boxes that are not loaded': (
        settings({TRAIN_SET + 'pipeline.1.with_bbox': False}),
        'train: the pipeline loads no boxes',
    ),
    # Boxes
    'box of negative width': (
        _one('train', 'annotations', bbox=[50, 50, -20, 30]),
        'boxes of negative size: id 2 [50, 50, -20, 30] in 000001.jpg',
    ),
    'box that is NaN': (
        _one('train', 'annotations', bbox=[50, 50, float('nan'), 20]),
        'boxes not finite: id 2',
    ),
    'box outside': (
        _one('val', 'annotations', bbox=[5000, 50, 20, 20]),
        'boxes outside of their images: id 2',
    ),
    'boxes as corners': (_as_corners, 'boxes not inside their images, and all would be as'),
    'boxes as fractions': (_as_fractions, 'are between 0 and 1, as fractions'),
    'no areas': (_all('train', 'annotations', area=0), 'areas of 0 or less: id 1'),
    # Evaluation
    "another evaluator's file": (
        lambda demo: demo.options.update({'val_evaluator.ann_file': str(demo.file('train'))}),
        'val_evaluator.ann_file is',
    ),
    'masks measured without a head': (
        settings({'val_evaluator.metric': ['bbox', 'segm']}),
        "metric 'segm' needs masks, and the model has no mask head",
    ),
    # Recipe
    'rate that is not a number': (
        settings({'optim_wrapper.optimizer.lr': '1e-3'}),
        "'1e-3' is not a number above 0",
    ),
    'weights missing': (
        settings({'model.backbone.init_cfg': dict(type='Pretrained', checkpoint='no.pth')}),
        'there is no file no.pth to start from',
    ),
    'stem frozen': (
        settings({'model.backbone.norm_eval': True}),
        'the stem is frozen but starts from random initialisation',
    ),
    'mean and std for images from 0 to 1': (
        settings({SCALE + 'mean': [0.485, 0.456, 0.406], SCALE + 'std': [0.229, 0.224, 0.225]}),
        'are for images from 0 to 1',
    ),
}
"""Planted faults, and words of the errors that name them."""

WARNINGS = {
    # Images
    'images in both splits': (_train_is_val, '16 of 16 images also trained on'),
    # Form
    'annotation 0': (_one('val', 'annotations', id=0), 'takes for "not found"'),
    # Classes
    'class too few': (
        own(metainfo=dict(classes=CLASSES[:3])),
        "objects are skipped, as their categories are not among the classes: 'cup' (",
    ),
    'class without objects': (_forget_class, 'no object of crate'),
    # Filtering
    'training in test mode': (own(test_mode=True), 'test_mode=True: images without objects stay'),
    # Boxes
    'box of no height': (
        _one('train', 'annotations', bbox=[50, 50, 20, 0]),
        'boxes less than 1 pixel wide or high: id 2',
    ),
    'box that leaves its image': (
        _one('train', 'annotations', bbox=[5, 5, 900, 20]),
        'boxes partly outside their images: id 2 [5, 5, 900, 20]',
    ),
    # Recipe
    'another batch': (
        settings({'train_dataloader.batch_size': 2}),
        '0.001 is for batch 4; --auto-scale-lr would make it 0.0005',
    ),
    'rate of SGD': (settings({'optim_wrapper.optimizer.lr': 0.02}), 'high for AdamW'),
    'no mean': (settings({SCALE + 'mean': None}), 'has mean=None'),
}
"""Planted faults, and words of the warnings that name them."""

FAULTS = ERRORS | WARNINGS


@pytest.mark.parametrize('name', FAULTS)
def test_a_planted_fault_is_found(demo: Demo, name: str):
    plant, words = FAULTS[name]
    plant(demo)
    assert_named(demo.findings('images'), words, ERROR if name in ERRORS else WARNING)


MASK_FAULTS = {
    'no mask': (_without('train', 'annotations', 'segmentation'), 'objects without a mask: id 2'),
    'empty mask': (_one('train', 'annotations', segmentation=[]), 'objects without a mask: id 2'),
    'no mask to measure': (
        _without('val', 'annotations', 'segmentation'),
        'objects without a mask: id 2',
    ),
    'two points': (
        _one('train', 'annotations', segmentation=[[1, 2, 3, 4]]),
        'polygons of fewer than 3 points: id 2',
    ),
    'turned run lengths': (
        _one('train', 'annotations', segmentation=dict(counts='x', size=[1, 2])),
        'masks not the size of their images: id 2',
    ),
    'masks that are not loaded': (
        settings({TRAIN_SET + 'pipeline.1.with_mask': False}),
        'model.roi_head.mask_head needs masks, which the pipeline does not load',
    ),
    'another number of mask classes': (
        settings({'model.roi_head.mask_head.num_classes': 80}),
        'model.roi_head.mask_head.num_classes: is 80',
    ),
}


@pytest.mark.parametrize('name', MASK_FAULTS)
def test_a_planted_fault_of_masks_is_found(demo: Demo, name: str):
    plant, words = MASK_FAULTS[name]
    demo.name = 'demo_mask_rcnn_ptnt_ti'
    plant(demo)
    said = '\n'.join(map(str, counted(demo.findings())))
    assert words in said, said


def test_broken_boxes_of_masks_are_no_matter_without_a_mask_head(demo: Demo):
    _without('train', 'annotations', 'segmentation')(demo)
    assert counted(demo.findings()) == []


def test_masks_are_compared_with_boxes_as_mmdet_clips_them(demo: Demo):
    demo.name = 'demo_mask_rcnn_ptnt_ti'
    mask = [[0, 10, 40, 10, 40, 60, 0, 60]]
    _one('train', 'annotations', bbox=[-60, 10, 100, 50], segmentation=mask)(demo)
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
