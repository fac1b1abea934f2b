"""Every form of mask data set that mmseg reads is accepted."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mmengine.dataset import BaseDataset
from mmengine.registry import DATASETS, DefaultScope
from mmseg.datasets import BaseSegDataset
from PIL import Image

from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.config.hosts import import_host

from .spoilt import SPLITS, MaskDemo, counted

CLASSES = ('background', 'ball', 'coin', 'crate', 'cup')


class ListedInCsv(BaseDataset):
    """Images and masks listed in two columns of a file."""

    METAINFO = dict(classes=CLASSES)

    def load_data_list(self) -> list[dict]:
        with open(self.ann_file) as lines:
            return [
                dict(img_path=image, seg_map_path=mask, reduce_zero_label=False, seg_fields=[])
                for image, mask in csv.reader(lines)
            ]


class NamesItself(BaseSegDataset):
    """Masks whose classes need not be in the config."""

    def __init__(self, **settings: object):
        super().__init__(metainfo=dict(classes=CLASSES), **settings)


class FindsItself(BaseSegDataset):
    """Images and masks without a prefix."""

    def load_data_list(self) -> list[dict]:
        root = Path(self.data_root)
        return [
            dict(
                img_path=str(image),
                seg_map_path=str(root / 'semantic' / 'train' / f'{image.stem}.png'),
                label_map=None,
                reduce_zero_label=False,
                seg_fields=[],
            )
            for image in sorted((root / 'train').iterdir())
        ]


def _train(masks: MaskDemo, **settings: object) -> None:
    """Give the training data other settings, of which none but the pipeline remains."""
    pipeline = masks.config().train_dataloader.dataset.pipeline
    data_set = dict(_delete_=True, pipeline=pipeline, **settings)
    masks.options['train_dataloader.dataset'] = data_set


def _first_sample(masks: MaskDemo) -> dict:
    """The first training sample as mmseg loads it."""
    import_host('mmseg')
    with DefaultScope.overwrite_default_scope('mmseg'):
        return DATASETS.build(masks.config().train_dataloader.dataset)[0]


def _one_folder(masks: MaskDemo) -> dict:
    one = masks.folder / 'one'
    shutil.copytree(masks.folder / 'train', one)
    shutil.copytree(masks.folder / 'semantic' / 'train', one, dirs_exist_ok=True)
    return dict(type='BaseSegDataset', data_root=str(one), metainfo=dict(classes=CLASSES))


def _csv(masks: MaskDemo) -> dict:
    file = masks.folder / 'train.csv'
    pairs = [(masks.image('train', i), masks.mask('train', i)) for i in range(1, 17)]
    file.write_text(''.join(f'{image},{mask}\n' for image, mask in pairs))
    return dict(type=ListedInCsv, ann_file=str(file))


def _names_itself(masks: MaskDemo) -> dict:
    prefix = dict(img_path='train', seg_map_path='semantic/train')
    return dict(type=NamesItself, data_root=str(masks.folder), data_prefix=prefix)


def _finds_itself(masks: MaskDemo) -> dict:
    return dict(
        type=FindsItself,
        data_root=str(masks.folder),
        data_prefix=dict(),
        metainfo=dict(classes=CLASSES),
    )


@pytest.mark.parametrize('form', [_one_folder, _csv, _names_itself, _finds_itself])
def test_what_mmseg_reads_is_no_fault(masks: MaskDemo, form: Callable[[MaskDemo], dict]):
    _train(masks, **form(masks))
    assert 'gt_sem_seg' in _first_sample(masks)['data_samples']
    findings = masks.findings('images', 'masks')
    assert counted(findings) == []
    said = '\n'.join(map(str, findings))
    if form is _csv:
        assert 'train: ListedInCsv is not a BaseSegDataset' in said
    else:
        assert 'train: 16 images' in said and 'train: 16 masks found' in said
        assert 'train: 5 classes: background, ball' in said


def test_an_image_and_its_mask_in_one_folder_are_distinguished(masks: MaskDemo):
    settings = _one_folder(masks)
    for file in (masks.folder / 'one').glob('*.jpg'):
        Image.open(file).save(file.with_name(f'{file.stem}_rgb.png'))
        file.with_suffix('.png').rename(file.with_name(f'{file.stem}_rgb_labels.png'))
    _train(masks, **settings, img_suffix='_rgb.png', seg_map_suffix='_rgb_labels.png')
    assert counted(masks.findings('images', 'masks')) == []


def test_a_mask_without_folder_is_missed_where_it_ought_to_be(masks: MaskDemo):
    _train(masks, **_finds_itself(masks))
    masks.mask('train', 3).unlink()
    (finding,) = counted(masks.findings())
    assert '1 of 16 masks not found' in str(finding)


def test_heads_are_compared_with_names_that_a_class_gives(masks: MaskDemo):
    _train(masks, **_names_itself(masks))
    masks.options['model.decode_head.num_classes'] = 150
    (finding,) = counted(masks.findings())
    assert 'is 150, the data has 5 classes' in str(finding)


def test_training_data_without_names_is_noted(masks: MaskDemo):
    masks.set(metainfo=dict(_delete_=True))
    findings = masks.findings('images', 'masks')
    assert counted(findings) == []
    assert any('train: metainfo.classes is missing' in str(finding) for finding in findings)


def test_a_missing_folder_is_reported_once(masks: MaskDemo):
    # PascalVOCDataset asserts that it exists.
    masks.set_everywhere(
        type='PascalVOCDataset', ann_file='absent.txt', metainfo=dict(_delete_=True)
    )
    masks.options['model.decode_head.num_classes'] = 21
    found = counted(masks.findings())
    assert [finding.where for finding in found] == list(SPLITS)
    assert all('absent.txt does not exist' in str(finding) for finding in found)


def test_masks_that_begin_at_0_and_at_1_can_be_joined(masks: MaskDemo):
    other = masks.folder / 'from_1'
    shutil.copytree(masks.folder / 'semantic' / 'train', other)
    masks.redraw(sorted(other.iterdir()), lambda pixels: pixels + 1)
    first = masks.config().train_dataloader.dataset.to_dict()
    # No step that moves pixels at random.
    first['pipeline'] = [
        dict(type='LoadImageFromFile'),
        dict(type='LoadAnnotations'),
        dict(type='Resize', scale=(192, 192)),
        dict(type='PackSegInputs'),
    ]
    prefix = dict(img_path='train', seg_map_path='from_1')
    second = dict(first, data_prefix=prefix, reduce_zero_label=True)
    both = dict(type='ConcatDataset', datasets=[first, second], ignore_keys=['reduce_zero_label'])
    masks.options['train_dataloader.dataset'] = dict(_delete_=True, **both)
    import_host('mmseg')
    with DefaultScope.overwrite_default_scope('mmseg'):
        joined = DATASETS.build(masks.config().train_dataloader.dataset)
    labels = [joined[i]['data_samples'].gt_sem_seg.data.numpy() for i in (2, 2 + 16)]
    assert np.array_equal(*labels) and labels[0].max() > 0
    (finding,) = counted(masks.findings('images', 'masks'))
    assert finding.severity is Severity.WARNING
    assert 'train: reduce_zero_label is True, that of train False' in str(finding)
