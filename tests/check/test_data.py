"""Finding and reading the data sets of a config."""

import os
from pathlib import Path

import pytest
from PIL import Image

from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.check.inspection import Inspection, read_data
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.view import ConfigView

from .spoilt import SPLITS, Demo, counted


@pytest.fixture(autouse=True)
def _host():
    import_host('mmdet')


@pytest.mark.parametrize(
    'wrapped',
    [
        lambda inner: dict(type='RepeatDataset', times=2, dataset=inner),
        lambda inner: dict(type='ConcatDataset', datasets=[inner, inner]),
        lambda inner: dict(
            type='RepeatDataset', times=2, dataset=dict(type='ConcatDataset', datasets=[inner])
        ),
        lambda inner: dict(type='ClassBalancedDataset', oversample_thr=0.1, dataset=inner),
    ],
)
def test_wrapped_data_sets_are_looked_into(demo: Demo, wrapped):
    config = demo.config()
    config.train_dataloader.dataset = wrapped(config.train_dataloader.dataset)
    data, findings = read_data(ConfigView(config), ('train',))
    assert not counted([*findings]) and len(data) == 1
    assert len(data[0].file.images) == 16 and data[0].data_set.pipeline


def test_one_file_is_read_once_for_all_splits(demo: Demo):
    train, val = read_data(demo.view(), SPLITS)[0]
    assert (train.name, val.name) == ('train', 'val and test')
    # mmdet's copy of the file content is not kept.
    assert train.used and train.built.data_list == []


def test_another_kind_of_data_set_is_skipped_and_reported(demo: Demo):
    demo.set(type='VOCDataset', ann_file='val.txt')
    data, findings = read_data(demo.view(), ('train',))
    assert data[0].file is None
    (finding,) = findings
    assert finding.severity is Severity.NOTE
    assert 'VOCDataset does not read files like CocoDataset: its annotations' in str(finding)


def test_folders_are_listed_once(demo: Demo, monkeypatch: pytest.MonkeyPatch):
    """Faster than to check each file."""
    listed, scandir = [], os.scandir
    monkeypatch.setattr(os, 'scandir', lambda path: listed.append(str(path)) or scandir(path))
    demo.findings()
    assert listed.count(str(demo.folder / 'train')) == 1


def test_remote_data_is_skipped_and_reported(demo: Demo):
    demo.set(data_root='s3://bucket/')
    findings = demo.findings()
    assert not [one for one in counted(findings) if 'train' in one.where]
    assert any('is not a local file' in str(one) for one in findings)


def test_class_names_come_from_a_file(demo: Demo, tmp_path: Path):
    names = tmp_path / 'names.txt'
    names.write_text('ball\ncoin\ncrate\ncup\n')
    demo.set(metainfo=dict(classes=str(names)))
    assert counted(demo.findings()) == []


def test_what_only_testing_needs_is_a_warning(demo: Demo):
    demo.options['test_dataloader.dataset.ann_file'] = 'annotations/absent.json'
    (finding,) = counted(demo.findings())
    assert finding.severity is Severity.WARNING and finding.where == 'test'


def test_images_of_an_empty_filter_are_all_kept(demo: Demo):
    demo.edit('train', lambda content: content['annotations'].clear())
    demo.set(filter_cfg=None)
    said = '\n'.join(map(str, counted(demo.findings())))
    assert '16 of 16 images are used, 16 of them without an object' in said


def test_labels_are_mmdets(demo: Demo):
    from mmengine.registry import DATASETS, DefaultScope

    demo.edit_both(lambda content: content['categories'].insert(1, dict(id=9, name='other')))
    config = demo.config()
    (data,) = read_data(ConfigView(config), ('train',))[0]
    with DefaultScope.overwrite_default_scope('mmdet'):
        assert DATASETS.build(config.train_dataloader.dataset).cat2label == data.labels


@pytest.mark.parametrize(
    ('kind', 'compared'), [('CocoDataset', True), ('VOCDataset', True), ('ReIDDataset', False)]
)
def test_classes_of_data_sets_of_objects_are_compared(demo: Demo, kind: str, compared: bool):
    other = dict(_delete_=True, type=kind, ann_file='val.txt', metainfo=dict(classes=('ball',)))
    demo.options['val_dataloader.dataset'] = other
    said = '\n'.join(map(str, counted(demo.findings())))
    assert ('val: the classes are ball; those of train are ball, coin' in said) is compared


def test_the_quick_half_draws_a_sample_of_many_masks(demo: Demo):
    def repeat_as_triangles(content: dict) -> None:
        many = (content['annotations'] * 200)[:5001]
        for number, one in enumerate(many):
            x, y, w, h = one['bbox']
            many[number] = dict(one, id=number, segmentation=[[x, y, x + w, y, x, y + h]])
        content['annotations'] = many

    demo.name = 'demo_mask_rcnn_ptnt_ti'
    demo.edit('train', repeat_as_triangles)
    for thorough, drawn in ((False, ', 2501 of them drawn'), (True, '')):
        inspection = Inspection(demo.view(), ('train',), thorough=thorough)
        inspection.check_data()
        assert f'train: 5,001 masks{drawn}' in [*map(str, inspection.findings)]


SCALE = dict(scale=(320, 320))
TWO_SCALES = dict(type='RandomResize', scale=[(320, 320), (640, 640)], keep_ratio=True)


@pytest.mark.parametrize(
    ('width', 'step', 'is_found'),
    [
        (900, dict(type='Resize', keep_ratio=True, **SCALE), True),
        (600, dict(type='Resize', keep_ratio=True, **SCALE), False),
        (600, dict(type='RandomResize', ratio_range=(0.75, 1.3), **SCALE), False),
        (600, dict(type='RandomResize', ratio_range=(0.75, 1.3), keep_ratio=True, **SCALE), True),
        # mmdet's ms_3x configs name two scales.
        (900, TWO_SCALES, True),
        (600, TWO_SCALES, False),
        (900, dict(type='Resize', **SCALE), False),
        (900, dict(type='Resize', scale_factor=0.1, keep_ratio=True), False),
    ],
)
def test_an_image_of_which_resizing_leaves_nothing(
    demo: Demo, width: int, step: dict, is_found: bool
):
    Image.new('RGB', (width, 1)).save(demo.image('train', 3))
    demo.set(pipeline=[dict(type='LoadImageFromFile'), step])
    narrow = [finding.what for finding in demo.findings('images') if 'too narrow' in finding.what]
    assert len(narrow) == is_found and all(f'000003.jpg ({width}x1)' in what for what in narrow)
