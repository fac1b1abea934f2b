"""Keys, types and values that nothing reads, and strides that differ from those of the maps."""

import copy
import random
from collections.abc import Iterator

import pytest
from mmengine.config import Config

from ptnt_mm.check import inspection
from ptnt_mm.check.inspection import check_before_training
from ptnt_mm.check.misspelt_settings import check_parameter_names, check_spelling
from ptnt_mm.check.strides import check_strides
from ptnt_mm.engine.build import build_model
from ptnt_mm.engine.config import READ_KEYS, read_config
from ptnt_mm.engine.constructors import classes_named
from ptnt_mm.engine.hosts import import_host
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Severity

from .spoilt import Demo, counted

# Names that users choose, paths that the check of files looks for, and settings of no effect here.
FREE = (
    'metainfo',
    'data_root',
    'ann_file',
    'data_prefix',
    'custom_keys',
    '_scope_',
    'prefix',
    'name',
)
ABSENT = ('work_dir', 'load_from', 'resume', 'launcher')


def _sites(value: object, path: tuple = ()) -> Iterator[tuple[tuple, str]]:
    """Every key and value of a config that can be misspelt."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in (*FREE, *ABSENT) or (not path and key not in READ_KEYS):
                continue
            if key != 'type':
                yield (*path, key), 'key'
            yield from _sites(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _sites(inner, (*path, i))
    elif isinstance(value, str) and value.isidentifier() and len(value) > 3:
        yield path, 'type' if path[-1] == 'type' else 'value'


def _misspelt(word: str, chance: random.Random) -> str:
    """A word with a letter dropped, doubled, or swapped with the next."""
    i = chance.choice([i for i in range(len(word) - 1) if word[i : i + 2].isalpha()])
    ways = [word[:i] + word[i + 1 :], word[: i + 1] + word[i:]]
    if word[i] != word[i + 1]:
        ways.append(word[:i] + word[i + 1] + word[i] + word[i + 2 :])
    return chance.choice(ways)


def spoil(config: Config, path: tuple, kind: str, chance: random.Random) -> str | None:
    """Misspell one word; return the old and the new one, or None if the new one is valid."""
    inner = config
    for step in path[:-1]:
        inner = inner[step]
    word = path[-1] if kind == 'key' else inner[path[-1]]
    if not any(word[i : i + 2].isalpha() for i in range(len(word) - 1)):
        return None
    wrong = _misspelt(word, chance)
    if classes_named(wrong, config.default_scope):
        return None
    if kind == 'key':
        inner[wrong] = inner.pop(word)
    else:
        inner[path[-1]] = wrong
    return f'{".".join(map(str, path))} ({kind}): {wrong}'


def spoilt_configs(config: Config, number: int, seed: int) -> Iterator[tuple[str, Config]]:
    """Copies of a config with one misspelt word each, from all sections in turn."""
    chance = random.Random(seed)
    sections: dict[str, list] = {}
    for path, kind in _sites(config._to_lazy_dict()):
        sections.setdefault(path[0], []).append((path, kind))
    turn = 0
    while number:
        places = sections[sorted(sections)[turn % len(sections)]]
        turn += 1
        spoilt = copy.deepcopy(config)
        what = spoil(spoilt, *chance.choice(places), chance)
        if what is not None:
            number -= 1
            yield what, spoilt


def _errors(config: Config) -> list[str]:
    return [str(one) for one in check_spelling(config) if one.severity is Severity.ERROR]


@pytest.mark.parametrize('name', ['demo_retinanet_ptnt_ti', 'demo_semantic_fpn_ptnt_ti'])
def test_slips_all_over_a_config_are_found(name: str):
    pytest.importorskip('mmseg')
    config = read_config(name)
    import_host(config.default_scope)
    assert _errors(config) == []
    missed = [what for what, spoilt in spoilt_configs(config, 40, 0) if not _errors(spoilt)]
    # Reading the first fails; a rule finds the second, and building the model the third.
    others = ('custom_imports.imports', 'log_level', 'model.backbone.arch')
    assert [what for what in missed if not what.startswith(others)] == []


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
        check_before_training(config)
    assert found in str(refused.value)


def test_a_section_under_a_wrong_name_is_found_and_a_variable_is_not(demo: Demo):
    config = demo.config()
    config.model_depth, config.defualt_hooks = 3, dict(timer=None)
    assert _errors(config) == ["defualt_hooks: nothing reads it: did you mean 'default_hooks'?"]


def test_custom_keys_are_parts_of_parameters_names(demo: Demo):
    demo.options['optim_wrapper.paramwise_cfg.custom_keys.outer_poss'] = dict(lr_mult=0.1)
    config = demo.config()
    (found,) = check_parameter_names(config, build_model(config))
    assert found.where.endswith('custom_keys.outer_poss') and "'outer_pos'" in found.what


def test_custom_keys_of_a_part_that_the_backbone_lacks(demo: Demo):
    """Our constructor refuses them when training begins; MMEngine's ignores them."""
    demo.options['model.backbone.position'] = 'peg'
    demo.options['optim_wrapper.paramwise_cfg.custom_keys.outer_pos'] = dict(decay_mult=0.0)
    config = demo.config()
    with pytest.raises(UserError, match='outer_pos: matches no parameter name'):
        check_before_training(config)
    del config.optim_wrapper.constructor
    assert not list(check_parameter_names(config, build_model(config)))


@pytest.mark.parametrize('kind', ['RetinaHead', 'FCOSHead'])
def test_strides_that_are_not_the_maps(kind: str, demo: Demo):
    config = demo.config()
    if kind == 'FCOSHead':
        config.model.bbox_head = dict(type=kind, num_classes=4, in_channels=64, feat_channels=64)
        config.model.bbox_head.strides = [8, 16, 32, 64, 128]
    assert not counted(list(check_strides(config, build_model(config))))
    config.model.backbone.out_indices = (1, 2, 3)
    config.model.neck.in_channels = [160, 320, 320]
    (found,) = check_strides(config, build_model(config))
    assert found.severity is Severity.ERROR and found.where == 'model.bbox_head.prior_generator'
    assert found.what == ('expects strides 8, 16, 32, 64, 128, its maps have 16, 32, 64, 128, 256')
    with pytest.raises(UserError, match='its maps have 16'):
        check_before_training(config)


def test_regions_are_cut_from_maps_of_known_strides():
    config = read_config('demo_mask_rcnn_ptnt_ti')
    import_host('mmdet')
    assert not counted(list(check_strides(config, build_model(config))))
    config.model.roi_head.bbox_roi_extractor.featmap_strides = [8, 16, 32, 64]
    found = counted(list(check_strides(config, build_model(config))))
    assert [one.where for one in found] == ['model.roi_head.bbox_roi_extractor']


def test_a_model_that_wants_more_than_an_image_is_a_note(demo: Demo, monkeypatch):
    model = build_model(demo.config())
    monkeypatch.setattr(type(model), 'extract_feat', lambda *_: 1 / 0)
    (found,) = check_strides(demo.config(), model)
    assert found.severity is Severity.NOTE and 'division by zero' in found.what


def test_a_check_that_cannot_finish_does_not_pass(demo: Demo, monkeypatch):
    monkeypatch.setattr(inspection, 'build_model', lambda config: 1 / 0)
    found = inspection.Inspection(demo.config(), ('train',))
    found.check_settings()
    (failed,) = found.errors
    assert 'this check could not be completed: ZeroDivisionError' in failed.what
