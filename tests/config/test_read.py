"""Reading configs: by path and by name, options, and errors."""

import sys
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.utils import get_object_from_string
from torch import nn

from ptnt_mm.models import TNT, PyramidTNT
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.versions import provider
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.read import apply_options, parse_options, read_config, require_keys
from ptnt_mm.workbench.config.settings import dicts_within, type_name

INSTALL_MMDET = f'Install it: pip install {provider("mmdet")}'
INSTALL_MMSEG = f'Install it: pip install {provider("mmsegmentation")} ftfy regex'


def _write(folder: Path, text: str) -> str:
    file = folder / 'config.py'
    file.write_text(text)
    return str(file)


def test_a_missing_file_names_the_nearest_config(tmp_path: Path):
    with pytest.raises(UserError, match="no config file .*did you mean 'retinanet_ptnt_s_1x'"):
        read_config(str(tmp_path / 'retinanet_ptnt_1x.py'))


def test_file_that_is_not_a_config_is_refused(tmp_path: Path):
    text = tmp_path / 'README.md'
    text.write_text('# not a config')
    with pytest.raises(UserError, match=r'README.md is not a config: expected a .py, .json'):
        read_config(str(text))


def test_a_name_is_as_good_as_a_path():
    assert read_config('retinanet_ptnt_s_1x').model.type == 'RetinaNet'


@pytest.mark.parametrize(
    'text',
    [
        "visualizer = dict(type='ptnt_mm.drawing.object_visualizer.ObjectVisualizer')",
        "val_evaluator = [dict(type='ptnt_mm.engine.mmdet_metrics.DenseCocoMetric')]",
    ],
)
def test_classes_that_have_moved_are_found(text: str, tmp_path: Path):
    config = read_config(_write(tmp_path, text))
    dicts = dict(dicts_within(config.to_dict(), ''))
    (kind,) = (part['type'] for part in dicts.values() if 'type' in part)
    assert get_object_from_string(kind) is not None


def test_suppression_is_shortened_as_mmcv_reads_it(tmp_path: Path):
    """MMEngine stores the function of a config in the new style with its module."""
    text = "model = dict(test_cfg=dict(nms=dict(type='mmcv.ops.nms', iou_threshold=0.5)))"
    assert read_config(_write(tmp_path, text)).model.test_cfg.nms.type == 'nms'


def test_what_a_config_in_the_new_style_names_is_not_imported(tmp_path: Path):
    text = 'from mmdet.no_such_part import Detector\nmodel = dict(type=Detector)\n'
    assert read_config(_write(tmp_path, text)).filename


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('model = dict(', 'cannot be read'),
        ('a = b', r'NameError: .*config.py, line 1\)'),
        ("_base_ = 'no_such_base.py'", 'cannot be read: .*no_such_base'),
        ("_base_ = 'mmnothing::base.py'", 'cannot be read: .*package name'),
        ("_base_ = 'mmpose::_base_/default_runtime.py'", 'mmpose is not installed'),
        ('raise RuntimeError("of its own")', 'cannot be read: RuntimeError: of its own'),
        (
            "custom_imports = dict(imports=['no_such_module'])",
            "No module named 'no_such_module'.*PYTHONPATH",
        ),
    ],
)
def test_a_broken_config_is_explained(text: str, message: str, tmp_path: Path):
    with pytest.raises(UserError, match=message):
        read_config(_write(tmp_path, text))


@pytest.mark.parametrize(
    'line', ['import no_such_package', 'from torch import no_such_name', 'no_such_value', '1 +']
)
def test_an_error_in_an_imported_module_names_its_line(line: str, tmp_path: Path, monkeypatch):
    tmp_path.joinpath('own_failing_module.py').write_text(f'import torch\n{line}\n')
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=r'own_failing_module.py, line 2\)') as caught:
        read_config(_write(tmp_path, "custom_imports = dict(imports=['own_failing_module'])"))
    assert ('PYTHONPATH' in str(caught.value)) == ('no_such_package' in line)


@pytest.mark.parametrize(
    ('base', 'absent', 'command'),
    [
        ('mmseg::_base_/default_runtime.py', 'mmsegmentation', INSTALL_MMSEG),
        ('mmdet::_base_/default_runtime.py', 'mmdet', INSTALL_MMDET),
    ],
)
def test_an_absent_host_is_named_with_all_that_it_needs(
    base: str, absent: str, command: str, tmp_path: Path, monkeypatch
):
    monkeypatch.setitem(sys.modules, base.partition(':')[0], None)
    monkeypatch.setattr('mmengine.config.config.is_installed', lambda package: package != absent)
    with pytest.raises(UserError, match=f'{absent} is not installed.*{command};'):
        read_config(_write(tmp_path, f'_base_ = {base!r}'))


@pytest.mark.parametrize(
    ('missing', 'remedy'),
    [
        ('mmseg', f'{INSTALL_MMSEG}; then run ptnt doctor'),
        ('ftfy', f'{INSTALL_MMSEG}; then run ptnt doctor'),
        ('mmdet', f'{INSTALL_MMDET}; then run ptnt doctor'),
        ('pkg_resources', 'pip install "setuptools<81"'),
        ('mmcv', 'ptnt doctor shows what is installed'),
    ],
)
def test_what_to_install_for_a_module(missing: str, remedy: str, monkeypatch):
    def absent(name: str):
        raise ModuleNotFoundError(f"No module named '{missing}'", name=missing)

    monkeypatch.setattr('importlib.import_module', absent)
    with pytest.raises(UserError, match=f'^mmseg cannot be imported: .*{missing}') as caught:
        import_host('mmseg')
    assert remedy in str(caught.value)


def test_options_reach_the_config(tmp_path: Path):
    file = _write(tmp_path, 'model = dict(a=1, b=[1, 2])\n')
    config = read_config(file, {'model.a': 3, 'model.b': [4], 'randomness.seed': 5})
    assert (config.model.a, config.model.b, config.randomness.seed) == (3, [4], 5)


def test_an_unknown_first_key_is_refused():
    with pytest.raises(UserError, match="unknown key 'modle': did you mean 'model'"):
        apply_options(Config(dict(model=dict(a=1))), {'modle.a': 2})


REFUSED = {
    # The schedule should follow.
    'epochs': (1, ['`epochs=1`', 'whole schedule']),
    'max_epochs': (1, ['`epochs=1`', 'whole schedule']),
    # A variable, whether it was used or not: what has its value is named.
    'size': (1, ['variable', 'train_cfg.max_epochs']),
    'steps.0': (1, ['variable', 'param_scheduler.milestones']),
    'unused.a': (1, ['variable']),
    # The name of a setting further inside.
    'optimizer.lr': (1, ['optim_wrapper.optimizer.lr']),
    # Values of the wrong form.
    'work_dir.a': (1, ['work_dir', 'single']),
    'model': (3, ['3', 'model.type']),
    'model.parts.1': ('x', ["'x'", 'model.parts.1.size']),
    'model.parts.7.size': (1, ['7']),
    'optim_wrapper.optimizer': ([dict(type='SGD')], ['SGD', 'optim_wrapper.optimizer.lr']),
}


@pytest.mark.parametrize('key', REFUSED)
def test_an_option_without_effect_is_refused_with_the_setting_that_was_meant(key: str):
    config = Config(
        dict(
            size=20,
            steps=[8, 11],
            unused=dict(a=None),
            model=dict(type='Any', parts=[3, dict(size=1)]),
            train_cfg=dict(max_epochs=20),
            param_scheduler=dict(milestones=[8, 11]),
            optim_wrapper=dict(optimizer=dict(lr=1e-3)),
        )
    )
    value, names = REFUSED[key]
    with pytest.raises(UserError) as caught:
        apply_options(config, {key: value})
    assert all(name in str(caught.value) for name in [key, *names])


def test_an_option_may_be_a_dict():
    config = Config(dict(optim_wrapper=dict(clip_grad=None), model=dict(position='none')))
    words = [
        "model.position=dict(type='peg', blocks=(0, 1))",
        "model.neck={'norm_cfg': dict(type='GN')}",
        'optim_wrapper.clip_grad=dict(max_norm=1)',
    ]
    apply_options(config, parse_options(words))
    assert config.model.to_dict() == dict(
        position=dict(type='peg', blocks=(0, 1)), neck=dict(norm_cfg=dict(type='GN'))
    )
    assert config.optim_wrapper.clip_grad.to_dict() == dict(max_norm=1)


HOOK = dict(type='EMAHook')


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ("[dict(type='EMAHook')]", [HOOK]),
        ("(dict(type='EMAHook'),)", (HOOK,)),
        ("dict(type='EMAHook'),{'type': 'EMAHook'}", (HOOK, HOOK)),
        ('[{"type": "EMAHook"}, {"a": [true, null, {}]}]', [HOOK, dict(a=[True, None, {}])]),
        ('[dict(steps=[dict(sizes=(1, 2))])]', [dict(steps=[dict(sizes=(1, 2))])]),
        ("['traffic light', 'car']", ['traffic light', 'car']),
        ('(1,2),(3,4)', ((1, 2), (3, 4))),
        # As MMEngine reads them
        ('[a, True, 1e-3]', ['a', True, 0.001]),
        ('a,b', ['a', 'b']),
        ('(1)', (1,)),
        ("'1'", 1),
        # Text
        *((text, text) for text in ('{}_x.pth', '{0}/a', '{a}_{b', 'my runs/a', "it's")),
    ],
)
def test_the_value_of_an_option(text: str, expected: object):
    assert parse_options([f'work_dir={text}']) == dict(work_dir=expected)


@pytest.mark.parametrize(
    'word',
    [
        *('model', 'model=f(1,2)', 'model=dict(1)', 'model=[1,2', "model={'a':}", 'model=dict('),
        *("model=dict(**{'b': 1})", "model={**{'b': 1}}"),
        *("hooks=[dict(type='A')", "hooks=[dict(type='A'))", 'hooks=[8', 'hooks=8]', 'hooks=[8)'),
        *('hooks=[dict(type=A)]', "hooks=[dict(type='A'), B]", 'hooks={"type": "A"'),
    ],
)
def test_an_option_that_cannot_be_read_is_one_line(word: str):
    with pytest.raises(UserError, match='expected KEY=VALUE') as caught:
        parse_options([word])
    assert '\n' not in str(caught.value) and word in str(caught.value)
    assert 'object at' not in str(caught.value)


@pytest.mark.parametrize(
    ('name', 'word', 'row'),
    [
        ('classifier_tnt_s_300e_imagenet', 'arch.inner_heads=2', TNT.archs['small']),
        ('retinanet_tnt_s_1x', 'arch=dict(inner_heads=2)', TNT.archs['small']),
        ('mask_rcnn_ptnt_ti_1x', 'arch.inner_heads=(1,1,2,2)', PyramidTNT.archs['tiny']),
    ],
)
def test_an_option_changes_one_setting_of_a_variant(name: str, word: str, row: dict):
    config = read_config(name, parse_options([f'model.backbone.{word}']))
    arch = config.model.backbone.arch.to_dict()
    assert [key for key in arch if arch[key] != row[key]] == ['inner_heads']
    build_model(config)


def test_an_option_in_an_arch_of_another_library_is_refused():
    config = Config(dict(model=dict(type='VisionTransformer', arch='base')))
    with pytest.raises(UserError, match='arch'):
        apply_options(config, {'model.arch.depth': 2})


def test_none_and_a_boolean_switch_off_what_has_keys():
    config = Config(dict(optim_wrapper=dict(clip_grad=dict(max_norm=1)), compile=dict(mode='x')))
    apply_options(config, {'optim_wrapper.clip_grad': None, 'compile': False})
    assert config.optim_wrapper.clip_grad is None and config.compile is False


def test_a_path_is_not_a_config():
    with pytest.raises(UserError, match=r"^'retinanet_ptnt_s_1x' is not a config: .*read_config"):
        require_keys('retinanet_ptnt_s_1x', ('model',))


def test_what_a_config_lacks_is_named(tmp_path: Path):
    config = Config.fromfile(_write(tmp_path, 'model = dict()\ntest_cfg = None\n'))
    with pytest.raises(UserError, match='config.py lacks test_cfg, test_dataloader'):
        require_keys(config, ('model', 'test_cfg', 'test_dataloader'))


@pytest.mark.parametrize(
    ('settings', 'name'),
    [
        (dict(type='Resize'), 'Resize'),
        (dict(type='mmseg.Resize'), 'Resize'),
        (dict(type=nn.Conv2d), 'Conv2d'),
        (dict(type='mmdet.datasets.transforms.Resize'), 'Resize'),
        (dict(type='Resize', _scope_='mmdet'), 'Resize'),
        # Namesakes
        (dict(type='Resize', _scope_='mine'), 'mine.Resize'),
        (dict(type='mine.Resize'), 'mine.Resize'),
        (dict(type=type('Conv2d', (), {})), f'{__name__}.Conv2d'),
        (dict(type=None), ''),
        (dict(), ''),
    ],
)
def test_type_name_of_settings(settings: dict, name: str):
    assert type_name(settings) == name


def test_a_path_through_a_number_is_refused():
    with pytest.raises(UserError, match='`options` model.a.b'):
        apply_options(Config(dict(model=dict(a=1))), {'model.a.b': 2})
