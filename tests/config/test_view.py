"""The forms that settings may have, and missing data sets, before anything slow happens."""

from pathlib import Path

import pytest
from mmdet.models import RetinaNet
from mmdet.models.task_modules import MaxIoUAssigner
from mmengine.config import Config

import ptnt_mm
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.view import ConfigView, DataSet


class Mine(RetinaNet):
    """A detector of a user."""


def _config(root: Path) -> Config:
    dataset = dict(data_root=f'{root}/', ann_file='train.json', data_prefix=dict(img='train/'))
    return Config(dict(train_dataloader=dict(dataset=dataset)))


@pytest.mark.parametrize(
    ('config', 'scope'),
    [
        (dict(default_scope='mmseg', model=dict(type='mmdet.RetinaNet')), 'mmseg'),
        (dict(default_scope=None, model=dict(type=RetinaNet)), 'mmdet'),
        (dict(default_scope=None, model=dict(type='mmdet.RetinaNet')), 'mmdet'),
        (dict(model=dict(type=ConfigView, head=dict(type=RetinaNet))), 'mmdet'),
        (
            dict(model=dict(type='Mine'), train_dataloader=dict(dataset=dict(type='mmseg.X'))),
            'mmseg',
        ),
        (dict(model=dict(type=Mine, backbone=dict(type='mmpretrain.ConvNeXt'))), 'mmdet'),
        (
            dict(
                model=dict(type='Mine', backbone=dict(type='mmpretrain.ConvNeXt')),
                val_dataloader=dict(dataset=[dict(type='mmdet.CocoDataset')]),
            ),
            'mmdet',
        ),
        (dict(model=dict(type='Mine')), 'mmengine'),
    ],
)
def test_the_scope_of_a_config_that_states_none_is_that_of_its_classes(config: dict, scope: str):
    view = ConfigView(Config(config))
    assert view.scope == scope and (view.host is None) == (scope == 'mmengine')


def test_defaults_of_classes_are_found_without_a_stated_scope():
    """An assigner of mmdet names the class that computes its overlaps, without its scope."""
    settings = dict(type=MaxIoUAssigner, pos_iou_thr=0.5, neg_iou_thr=0.4)
    model = build_model(Config(dict(default_scope=None, model=settings)))
    assert type(model.iou_calculator).__name__ == 'BboxOverlaps2D'


def test_nothing_is_said_when_all_is_there(tmp_path: Path):
    (tmp_path / 'train.json').touch()
    (tmp_path / 'train').mkdir()
    ConfigView(_config(tmp_path)).require_files(('train', 'val'))


def test_the_missing_file_the_layout_and_the_page_are_named(tmp_path: Path):
    (tmp_path / 'train').mkdir()
    with pytest.raises(UserError) as caught:
        ConfigView(_config(tmp_path)).require_files(('train',))
    message = str(caught.value)
    assert message.startswith(f'{tmp_path}/train.json does not exist')
    assert f'found    {tmp_path}/train\n' in message
    assert 'docs/data.md' in message
    # Its folder is there, perhaps because `data_root` named it.
    assert 'data_root' not in message and 'ptnt demo' not in message


def test_a_folder_that_may_be_elsewhere_is_asked_for(tmp_path: Path):
    config = _config(tmp_path / 'gone')
    config.train_dataloader.dataset.update(ann_file=str(tmp_path), data_prefix=dict(img=''))
    expected = 'gone does not exist(.|\n)*`data_root=FOLDER`, or change'
    with pytest.raises(UserError, match=expected) as caught:
        ConfigView(config).require_files(('train',))
    assert 'ptnt demo' not in str(caught.value)


def test_the_demo_is_to_be_created(tmp_path: Path):
    with pytest.raises(UserError, match='To create the demo set, run: ptnt demo$'):
        ConfigView(_config(tmp_path / 'demo')).require_files(('train',))


def test_a_classifiers_folder_may_stand_alone(tmp_path: Path):
    config = _config(tmp_path)
    config.train_dataloader.dataset.update(ann_file='', data_prefix='train')
    with pytest.raises(UserError, match=f'{tmp_path}/train does not exist'):
        ConfigView(config).require_files(('train',))
    (tmp_path / 'train').mkdir()
    ConfigView(config).require_files(('train',))


def test_wrapped_and_joined_datasets_are_looked_into(tmp_path: Path):
    inner = _config(tmp_path).train_dataloader.dataset.to_dict()
    joined = dict(type='ConcatDataset', datasets=[dict(type='RepeatDataset', dataset=inner)])
    with pytest.raises(UserError, match='train.json'):
        ConfigView(Config(dict(train_dataloader=dict(dataset=joined)))).require_files(('train',))


def test_folders_of_images_and_masks(tmp_path: Path):
    """Settings of a data set without an annotation file, as in mmseg."""
    prefix = dict(img_path='images/train', seg_map_path='masks/train')
    dataset = dict(data_root=f'{tmp_path}/', ann_file='', data_prefix=prefix)
    config = Config(dict(train_dataloader=dict(dataset=dataset)))
    (tmp_path / 'images' / 'train').mkdir(parents=True)
    with pytest.raises(UserError, match=f'^{tmp_path}/masks/train does not exist'):
        ConfigView(config).require_files(('train',))
    (tmp_path / 'masks' / 'train').mkdir(parents=True)
    ConfigView(config).require_files(('train',))


def test_evaluators_are_looked_into(tmp_path: Path):
    evaluators = [dict(type='Other'), dict(type='CocoMetric', ann_file=str(tmp_path / 'val.json'))]
    with pytest.raises(UserError, match='val.json'):
        ConfigView(Config(dict(val_evaluator=evaluators))).require_files(('val',))


def test_remote_storage_is_left_to_mmengine():
    remote = dict(data_root='s3://bucket/', ann_file='train.json')
    ConfigView(Config(dict(val_dataloader=dict(dataset=remote)))).require_files(('val',))


@pytest.mark.parametrize(
    ('name', 'page'),
    [
        ('retinanet_ptnt_s_1x', 'training.md#coco'),
        ('semantic_fpn_ptnt_s_40k_ade20k', 'segmentation.md#ade20k-and-cityscapes'),
        ('upernet_ptnt_s_80k_cityscapes', 'segmentation.md#ade20k-and-cityscapes'),
        ('classifier_ptnt_s_300e_imagenet', 'segmentation.md#imagenet'),
    ],
)
def test_the_page_of_each_public_data_set(name: str, page: str, tmp_path: Path, monkeypatch):
    config = ptnt_mm.get_config(name)
    monkeypatch.chdir(tmp_path)
    for path in ConfigView(config).val.files:
        with pytest.raises(UserError, match=f'docs/{page} explains how to get this data set'):
            ConfigView(config).require_files(('val',))
        path.mkdir(parents=True)
    ConfigView(config).require_files(('val',))


KEYS = ('model', 'optim_wrapper', 'param_scheduler', 'custom_hooks', 'default_hooks', 'train_cfg')


@pytest.mark.parametrize('settings', [dict(), dict.fromkeys((*KEYS, 'val_evaluator', 'load_from'))])
def test_settings_that_are_missing_or_none_are_empty(settings: dict):
    view = ConfigView(Config(settings))
    assert view.scope == 'mmengine' and view.host is None and view.length.end == float('inf')
    assert not (view.backbone or view.preprocessor or view.optimizer or view.default_hook('logger'))
    assert view.schedulers == view.custom_hooks == view.val.evaluators == view.val.files == []
    assert view.starting_weights is None and not view.is_of_family and not view.val.is_evaluated


def test_settings_in_one_of_several_forms():
    one = dict(type='A', by_epoch=False)
    several = dict(type='MultiDatasetsEvaluator', metrics=[one], dataset_prefixes=['x'])
    view = ConfigView(
        Config(
            dict(
                data_preprocessor=dict(mean=[1]),  # as in mmpretrain
                model=dict(backbone=dict(init_cfg=[dict(type='Pretrained', checkpoint='w.pth')])),
                param_scheduler=one,
                train_cfg=dict(by_epoch=True, max_epochs=3),
                val_evaluator=one,
                test_evaluator=several,
            )
        )
    )
    assert view.preprocessor == dict(mean=[1]) and view.starting_weights == 'w.pth'
    assert view.schedulers == view.val.evaluators == view.test.evaluators == [one]
    assert view.val.separate_evaluator is None and view.test.separate_evaluator == several
    assert view.length.text == '3 epochs'


@pytest.mark.parametrize(
    ('transform', 'is_read'),
    [
        (dict(type='LoadAnnotations', with_bbox=True, with_mask=True), False),
        (dict(type='LoadAnnotations', with_seg=True), True),
        (dict(type='RandomApply', transforms=[dict(type='LoadAnnotations', with_seg=True)]), True),
        (dict(type='LoadPanopticAnnotations', backend_args=None), True),
    ],
)
def test_a_folder_of_segments_counts_where_it_is_read(transform: dict, is_read: bool):
    """mmdet's configs for instances inherit the folder of the panoptic ones."""
    data_set = DataSet(
        dict(type='CocoDataset', ann_file='a.json', data_prefix=dict(img='images', seg='panoptic')),
        (dict(type='LoadImageFromFile'), transform),
        'mmdet',
    )
    assert (Path('panoptic') in data_set.paths()) == is_read
    assert {Path('a.json'), Path('images')} <= {*data_set.paths()}
