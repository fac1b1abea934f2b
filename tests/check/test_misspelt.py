"""Keys, types and values that nothing reads, and strides that differ from those of the maps."""

import pytest
from mmengine.config import Config

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.check.inspection import check_before_training
from ptnt_mm.workbench.check.misspelt_settings import check_parameter_names, check_spelling
from ptnt_mm.workbench.check.network import check_strides
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.view import ConfigView

from .spoilt import Demo, counted


def _errors(config: Config) -> list[str]:
    return [
        str(one) for one in check_spelling(ConfigView(config)) if one.severity is Severity.ERROR
    ]


@pytest.mark.parametrize(
    ('path', 'value', 'words'),
    [
        ('default_hooks.checkpoint.intervall', 3, "did you mean 'interval'?"),
        ('default_hooks.chekpoint.interval', 3, "chekpoint: nothing reads it: did you mean 'c"),
        ('optim_wrapper.type', 'OptimWraper', "did you mean 'OptimWrapper'?"),
        ('optim_wrapper.optimizer.type', 'Adamm', "did you mean 'Adam'?"),
        ('optim_wrapper.optimizer.momentun', 0.9, 'is not an argument of AdamW'),
        ('param_scheduler.0.type', 'PolyLRR', "did you mean 'PolyLR'?"),
        ('custom_hooks.0.type', 'EMAHok', "did you mean 'EMAHook'?"),
        ('train_cfg.max_epoch', 3, "did you mean 'max_epochs'?"),
        ('train_dataloader.batchsize', 3, "did you mean 'batch_size'?"),
        ('train_dataloader.batch_size', 'four', "is 'four', expected int"),
        ('val_evaluator.metric', 'bbx', "did you mean 'bbox', the default?"),
        ('randomness.sead', 3, 'sead: is not an argument of set_random_seed'),
        ('custom_imports.allow_failed', True, 'is not an argument of import_modules_from_strings'),
        ('env_cfg.mp_cfg.opencv_threads', 0, 'is not an argument of set_multi_processing'),
        ('env_cfg.dist_cfg.launchr', 'pytorch', 'is not an argument of init_dist'),
        ('train_dataloader.dataset.metainfo.clases', ('a', 'b'), "did you mean 'classes'?"),
        ('train_dataloader.dataset.pipeline.3.type', 'RandomFilp', "did you mean 'RandomFlip'?"),
        ('model.bbox_head.feat_chanels', 64, 'is not an argument of RetinaHead'),
        ('custom_hooks.0.ema_type', 'mmseg.ExpMomentumEMA', 'unknown type'),
        ('model.test_cfg.scor_thr', 0.5, "did you mean 'score_thr'?"),
        ('model.test_cfg.scote_thr', 0.5, "did you mean 'score_thr'?"),
    ],
)
def test_a_finding_names_the_place_and_the_nearest(demo: Demo, path: str, value, words: str):
    demo.options[path] = value
    config = demo.config()
    (found,) = _errors(config)
    where = found.partition(': ')[0]
    assert path.startswith(where.replace('[', '.').replace(']', '')) and words in found
    # Before data is read.
    demo.file('train').unlink()
    with pytest.raises(UserError, match='has errors') as refused:
        check_before_training(ConfigView(config))
    assert found in str(refused.value)


def test_a_section_under_a_wrong_name_is_found_and_a_variable_is_not(demo: Demo):
    config = demo.config()
    config.model_depth, config.defualt_hooks = 3, dict(timer=None)
    assert _errors(config) == ["defualt_hooks: nothing reads it: did you mean 'default_hooks'?"]


def test_a_word_of_one_letter_is_no_misspelt_default(demo: Demo):
    config = demo.config()
    config.train_dataloader.dataset.data_root = 'p'  # the default is ''
    assert _errors(config) == []


def test_custom_keys_are_parts_of_parameters_names(demo: Demo):
    demo.options['optim_wrapper.paramwise_cfg.custom_keys.outer_poss'] = dict(lr_mult=0.1)
    config = demo.config()
    (found,) = check_parameter_names(ConfigView(config), build_model(config))
    assert found.where.endswith('custom_keys.outer_poss') and "'outer_pos'" in found.what


def test_custom_keys_of_a_part_that_the_backbone_lacks(demo: Demo):
    """Our constructor refuses them when training begins; MMEngine's ignores them."""
    demo.options['model.backbone.position'] = 'peg'
    demo.options['optim_wrapper.paramwise_cfg.custom_keys.outer_pos'] = dict(decay_mult=0.0)
    config = demo.config()
    with pytest.raises(UserError, match='outer_pos: matches no parameter name'):
        check_before_training(ConfigView(config))
    del config.optim_wrapper.constructor
    assert not list(check_parameter_names(ConfigView(config), build_model(config)))


@pytest.mark.parametrize('kind', ['RetinaHead', 'FCOSHead'])
def test_strides_that_are_not_the_maps(kind: str, demo: Demo):
    config = demo.config()
    if kind == 'FCOSHead':
        config.model.bbox_head = dict(type=kind, num_classes=4, in_channels=64, feat_channels=64)
        config.model.bbox_head.strides = [8, 16, 32, 64, 128]
    assert not counted(list(check_strides(ConfigView(config), build_model(config))))
    config.model.backbone.out_indices = (1, 2, 3)
    config.model.neck.in_channels = [160, 320, 320]
    (found,) = check_strides(ConfigView(config), build_model(config))
    assert found.severity is Severity.ERROR and found.where == 'model.bbox_head.prior_generator'
    assert found.what == ('expects strides 8, 16, 32, 64, 128, its maps have 16, 32, 64, 128, 256')
    assert 'write strides=[16, 32, 64, 128, 256]' in found.advice
    with pytest.raises(UserError, match='its maps have 16'):
        check_before_training(ConfigView(config))


@pytest.mark.parametrize('in_list', [False, True])
def test_channels_of_the_neck_that_are_not_the_backbones(demo: Demo, in_list: bool):
    config = demo.config()
    config.model.neck.in_channels = [256, 512, 1024, 2048]
    if in_list:
        config.model.neck = [config.model.neck]
    (found,) = check_strides(ConfigView(config), build_model(config))
    path = 'model.neck[0].in_channels' if in_list else 'model.neck.in_channels'
    assert found.severity is Severity.ERROR and found.where == path
    assert found.what.startswith('is [256, 512, 1024, 2048], the maps of the backbone have [80, ')
    assert found.advice == 'write in_channels=[80, 160, 320, 320]'


def test_regions_are_cut_from_maps_of_known_strides():
    config = read_config('demo_mask_rcnn_ptnt_ti')
    import_host('mmdet')
    assert not counted(list(check_strides(ConfigView(config), build_model(config))))
    config.model.roi_head.bbox_roi_extractor.featmap_strides = [8, 16, 32, 64]
    found = counted(list(check_strides(ConfigView(config), build_model(config))))
    assert [one.where for one in found] == ['model.roi_head.bbox_roi_extractor']


def test_a_model_that_wants_more_than_an_image_is_a_note(demo: Demo, monkeypatch):
    model = build_model(demo.config())
    monkeypatch.setattr(type(model), 'extract_feat', lambda *_: 1 / 0)
    (found,) = check_strides(demo.view(), model)
    assert found.severity is Severity.NOTE and 'division by zero' in found.what
