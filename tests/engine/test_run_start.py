"""The weights that a run starts from."""

import shutil
from pathlib import Path

import attacks
import pytest
import torch
from mmengine.config import Config, ConfigDict
from mmengine.runner import Runner
from toy import evaluated, log_of, names, quick, toy_config, train

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.initial_weights import check_start, use_pretrained
from ptnt_mm.workbench.config.stored import changed_settings
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.run_start import Start, choose_start, resume_of
from ptnt_mm.workbench.engine.runner import build_runner
from ptnt_mm.workbench.engine.train import train as run_training


def _config(**backbone: object) -> Config:
    return Config(dict(model=dict(type='Any', backbone=dict(type='PyramidTNT', **backbone))))


def _checkpoint(folder: Path, meta: object) -> str:
    file = folder / 'epoch_1.pth'
    torch.save(dict(meta=meta, state_dict=dict(a=torch.ones(1)), optimizer={}), file)
    return str(file)


def test_pretrained_weights_keep_the_statistics_of_the_stem():
    config = _config()
    use_pretrained(ConfigView(config), '~/weights.pth')
    backbone = config.model.backbone
    assert backbone.init_cfg == dict(type='Pretrained', checkpoint='~/weights.pth')
    assert backbone.norm_cfg == dict(type='BN', requires_grad=False) and backbone.norm_eval


@pytest.mark.parametrize(
    'chosen',
    [
        dict(norm_eval=False),
        dict(norm_cfg=dict(type='SyncBN')),
        dict(norm_cfg=dict(type='GN', num_groups=1)),
        dict(norm_cfg=dict(type='BN', requires_grad=True), norm_eval=True),
    ],
    ids=str,
)
def test_the_config_decides_about_its_norms(chosen: dict):
    config = _config(**chosen)
    use_pretrained(ConfigView(config), 'weights.pth')
    found = {key: config.model.backbone.get(key) for key in ('norm_cfg', 'norm_eval')}
    assert found == dict(norm_cfg=None, norm_eval=None) | chosen


def test_the_norms_of_other_backbones_are_left_alone():
    settings = dict(type='mmdet.ResNet', depth=50, norm_cfg=dict(type='BN', requires_grad=True))
    config = Config(dict(default_scope='mmdet', model=dict(backbone=dict(settings))))
    use_pretrained(ConfigView(config), 'weights.pth')
    assert config.model.backbone.pop('init_cfg').checkpoint == 'weights.pth'
    assert config.model.backbone == settings


def test_a_checkpoint_without_a_type_is_pretrained():
    config = _config(init_cfg=dict(checkpoint='https://host/pvt_v2_b0.pth'))
    assert ConfigView(config).starting_weights == 'https://host/pvt_v2_b0.pth'


@pytest.mark.parametrize('kind', ['TNT', 'CPVT'])
def test_a_backbone_without_statistics_only_gets_its_weights(kind: str):
    config = Config(dict(model=dict(backbone=dict(type=kind, arch='small'))))
    use_pretrained(ConfigView(config), 'weights.pth')
    init = dict(type='Pretrained', checkpoint='weights.pth')
    assert config.model.backbone == dict(type=kind, arch='small', init_cfg=init)


def test_pretrained_weights_need_a_backbone():
    with pytest.raises(UserError, match='Any has no backbone'):
        use_pretrained(ConfigView(Config(dict(model=dict(type='Any')))), 'weights.pth')


@pytest.mark.parametrize(
    'init',
    [
        dict(type='Pretrained', checkpoint='weights.pth'),
        [dict(type='Pretrained', checkpoint='weights.pth')],
    ],
)
def test_where_training_starts(init: dict | list):
    assert ConfigView(_config(init_cfg=init)).starting_weights == 'weights.pth'
    assert ConfigView(_config(init_cfg=None)).starting_weights is None
    assert ConfigView(_config(init_cfg=dict(type='Kaiming'))).starting_weights is None


def test_a_missing_file_is_named_and_an_address_is_left_to_the_reader():
    with pytest.raises(UserError, match='there is no file weights.pth to start from'):
        check_start(ConfigView(_config(init_cfg=dict(type='Pretrained', checkpoint='weights.pth'))))
    check_start(
        ConfigView(_config(init_cfg=dict(type='Pretrained', checkpoint='https://a.invalid/w.pth')))
    )


def test_published_weights_have_names():
    config = Config(dict(model=dict(backbone=dict(type='TNT', arch='small'))))
    use_pretrained(ConfigView(config), 'tnt_s')
    assert check_start(ConfigView(config)).startswith('https://github.com/huawei-noah/')
    use_pretrained(ConfigView(config), 'tnt_m')
    with pytest.raises(UserError, match='no file tnt_m to start.*`ptnt weights`.*did you mean'):
        check_start(ConfigView(config))
    use_pretrained(ConfigView(config), 'ptnt_s')
    with pytest.raises(UserError, match='no direct address: open https://pan.baidu.com/'):
        check_start(ConfigView(config))


@pytest.mark.parametrize(
    'frozen',
    [dict(norm_eval=True), dict(frozen_stages=0), dict(norm_cfg=dict(requires_grad=False))],
)
def test_a_frozen_stem_does_not_start_from_random_numbers(frozen: dict):
    check_start(ConfigView(_config()))
    with pytest.raises(UserError, match='frozen but starts from random init.*`pretrained=PATH`'):
        check_start(ConfigView(_config(**frozen)))


def test_a_frozen_stem_without_norms_has_only_stages_to_thaw():
    config = _config(frozen_stages=0)
    config.model.backbone.type = 'TNT'
    with pytest.raises(UserError, match='or set model.backbone.frozen_stages=-1$'):
        check_start(ConfigView(config))


def test_resuming_forgets_the_pretrained_file_and_stays_frozen_as_begun(tmp_path: Path):
    stored = 'model = dict(backbone=dict(norm_eval=True))'
    config = _config(init_cfg=dict(type='Pretrained', checkpoint='gone.pth'))
    choose_start(ConfigView(config), tmp_path, resume=_checkpoint(tmp_path, dict(cfg=stored)))
    assert config.resume and config.load_from and config.model.backbone.init_cfg is None
    assert config.model.backbone.norm_eval
    check_start(ConfigView(config))


@pytest.mark.parametrize('stored', ['', 'model = 3', 'model = dict(backbone=[])', 'no python ('])
def test_resuming_survives_a_stored_config_of_another_kind(stored: str, tmp_path: Path):
    config = _config()
    choose_start(ConfigView(config), tmp_path, resume=_checkpoint(tmp_path, dict(cfg=stored)))
    assert 'norm_eval' not in config.model.backbone


@pytest.mark.parametrize(
    'stored',
    [
        'x = ' + '-' * 100_000 + '1',
        'x = ' + '[' * 100_000 + ']' * 100_000,
        'x = dict(' + 'a=dict(' * 100_000 + ')' * 100_001,
        'x = 0x' + 'f' * 10_000,
        'x = {' + ': 0, '.join(map(str, attacks.colliding_numbers())) + ': 0}' + ' ' * 500_000,
    ],
    ids=lambda text: text[:12],
)
def test_resuming_survives_a_stored_config_of_endless_text(stored: str, tmp_path: Path):
    config = _config()
    start = choose_start(
        ConfigView(config), tmp_path, resume=_checkpoint(tmp_path, dict(cfg=stored))
    )
    assert not start.stored and config.resume


def test_a_change_cannot_steer_a_terminal(tmp_path: Path):
    config = _config()
    stored = "x = {'\\x1b[2J': 1}"
    start = choose_start(
        ConfigView(config), tmp_path, resume=_checkpoint(tmp_path, dict(cfg=stored))
    )
    lines = list(changed_settings(start.stored, config))
    assert any('[2J, from 1' in line for line in lines) and all(map(str.isprintable, lines))


@pytest.mark.parametrize('meta', [None, 'text', [1]])
def test_weights_alone_cannot_be_resumed(meta: object, tmp_path: Path):
    with pytest.raises(UserError):
        choose_start(ConfigView(_config()), tmp_path, resume=_checkpoint(tmp_path, meta))


def test_resuming_without_a_checkpoint_keeps_the_starting_weights(tmp_path: Path):
    config = _config(init_cfg=dict(type='Pretrained', checkpoint='backbone.pth'))
    whole = tmp_path / 'whole.pth'
    whole.touch()
    config.load_from = str(whole)
    start = choose_start(ConfigView(config), tmp_path, resume='auto')
    assert start == Start(str(whole))
    assert not config.resume and config.load_from == str(whole)
    assert config.model.backbone.init_cfg.checkpoint == 'backbone.pth'


def test_the_best_checkpoint_has_no_optimizer_to_go_on_with(tmp_path: Path):
    file = tmp_path / 'best_coco_bbox_mAP_epoch_3.pth'
    torch.save(dict(meta=dict(epoch=3), state_dict=dict(a=torch.ones(1))), file)
    with pytest.raises(UserError, match='contains weights only; start from them with `load_from`'):
        choose_start(ConfigView(_config()), tmp_path, resume=str(file))


def test_a_kept_seed_is_no_change(tmp_path: Path):
    before, now = _config(), _config()
    file = _checkpoint(tmp_path, dict(cfg=before.pretty_text, seed=7))
    assert not list(
        changed_settings(choose_start(ConfigView(now), tmp_path, resume=file).stored, now)
    )


def test_the_seed_is_kept_whatever_the_config(tmp_path: Path):
    for randomness in (None, dict(seed=8, deterministic=True)):
        config = _config()
        config.randomness = randomness
        choose_start(
            ConfigView(config), tmp_path, resume=_checkpoint(tmp_path, dict(cfg='', seed=7))
        )
        assert config.randomness == dict(randomness or {}, seed=7)


@pytest.mark.parametrize('seed', [None, 7, 8])
def test_another_seed_cannot_be_asked_for(tmp_path: Path, seed: int | None):
    config = _config()
    file = _checkpoint(tmp_path, dict(cfg='', seed=7))
    if seed == 8:
        with pytest.raises(UserError, match='`seed=8`: the run .* has seed 7: omit `seed`'):
            choose_start(ConfigView(config), tmp_path, resume=file, seed=seed)
    else:
        choose_start(ConfigView(config), tmp_path, resume=file, seed=seed)
        assert config.randomness.seed == 7


def test_changed_settings_are_named(tmp_path: Path):
    before = _config(drop_path_rate=0.1)
    before.merge_from_dict({'optim_wrapper.optimizer.lr': 1e-4, 'steps': [8, 11], 'resume': False})
    now = _config(drop_path_rate=0.2)
    now.merge_from_dict({'optim_wrapper.optimizer.lr': 1e-4, 'steps': [8, 10], 'gone': 1})
    file = _checkpoint(tmp_path, dict(cfg=before.pretty_text))
    stored = choose_start(ConfigView(now), tmp_path, resume=file).stored
    assert list(changed_settings(stored, now)) == [
        'gone, from nothing to 1',
        'model.backbone.drop_path_rate, from 0.1 to 0.2',
        'steps, from [8, 11] to [8, 10]',
    ]
    longer = Config(dict(schedule=[dict(type='A', end=1), dict(type='B', end=4)]))
    same = ConfigDict(schedule=[dict(type='A', end=1), dict(type='B', end=2)])
    other = ConfigDict(schedule=[dict(type='B', end=4)])
    assert list(changed_settings(same, longer)) == ['schedule[1].end, from 2 to 4']
    assert len(list(changed_settings(other, longer))) == 1
    assert not list(changed_settings(stored, before))
    assert not list(changed_settings(ConfigDict(), now))


def test_weights_of_a_backbone_alone_are_for_pretrained(tmp_path: Path):
    file = tmp_path / 'backbone.pth'
    torch.save({'outer_pos': torch.ones(1), 'stages.0.weight': torch.ones(1)}, file)
    with pytest.raises(UserError, match='backbone.pth: contains weights only.*`pretrained`'):
        choose_start(ConfigView(_config()), tmp_path, resume=str(file))


def test_a_command_with_pretrained_weights_is_repeated_to_resume(tmp_path: Path):
    began = 'model = dict(backbone=dict(norm_eval=True))'
    checkpoint = _checkpoint(tmp_path, dict(cfg=began))
    config = _config()
    choose_start(ConfigView(config), tmp_path, pretrained='gone.pth', resume=checkpoint)
    assert config.resume and config.model.backbone.init_cfg is None
    assert config.model.backbone.norm_eval
    # Without a checkpoint, it starts from the beginning.
    weights = tmp_path / 'backbone.pt'
    weights.touch()
    empty = tmp_path / 'empty'
    config = _config()
    choose_start(ConfigView(config), empty, pretrained=str(weights), resume='auto')
    assert not config.get('resume')
    # Also with the config's own `resume`, which finds nothing either.
    config = _config()
    config.resume = True
    choose_start(ConfigView(config), empty, pretrained=str(weights))
    assert config.model.backbone.init_cfg.checkpoint == str(weights)


def test_a_backbone_without_batch_norm_leaves_no_trace_of_pretrained_weights(tmp_path: Path):
    checkpoint = _checkpoint(tmp_path, dict(cfg="model = dict(backbone=dict(type='TNT'))"))
    config = _config()
    config.model.backbone = dict(type='TNT', arch='small')
    choose_start(ConfigView(config), tmp_path, pretrained='gone.pth', resume=checkpoint)
    assert config.resume and config.model.backbone.init_cfg is None


def test_pretrained_weights_that_would_not_be_used(tmp_path: Path):
    config = _config()
    config.load_from = 'whole.pth'
    with pytest.raises(
        UserError, match='`pretrained=some.pth`: the whole model starts from .*`load_from`'
    ):
        choose_start(ConfigView(config), tmp_path, pretrained='some.pth')


def test_a_run_can_be_named_by_its_folder(tmp_path: Path):
    """That of its project, or its work dir; the best checkpoint counts."""
    work_dir = tmp_path / 'project' / 'work_dir'
    work_dir.mkdir(parents=True)
    best = Path(_checkpoint(work_dir, {})).rename(work_dir / 'best_coco_bbox_mAP_epoch_3.pth')
    for folder in (work_dir.parent, work_dir):
        assert choose_start(ConfigView(_config()), tmp_path, load_from=folder).weights == str(best)
    best.unlink()
    with pytest.raises(UserError, match='`load_from=.*project`'):
        choose_start(ConfigView(_config()), tmp_path, load_from=work_dir.parent)


def test_a_resume_reads_its_checkpoint_once(tmp_path: Path):
    whole = train(quick(toy_config(tmp_path / 'whole', epochs=2)))
    train(quick(toy_config(tmp_path / 'part', epochs=1)))
    config = quick(toy_config(tmp_path / 'part', epochs=2))
    config.experiment_name = 'reads_once'
    start = choose_start(ConfigView(config), tmp_path / 'part', resume='auto')
    assert start.weights == str(tmp_path / 'part' / 'epoch_1.pth')
    Path(start.weights).unlink()
    weights = build_runner(ConfigView(config), start.checkpoint).train().state_dict()
    assert all(torch.equal(weights[name], whole[name]) for name in whole)


@pytest.mark.parametrize(
    ('config', 'load_from', 'expected'),
    [
        (dict(), None, None),
        (dict(resume=False, load_from='a.pth'), None, None),
        (dict(resume=True), None, 'auto'),
        (dict(resume=True, load_from='a.pth'), None, 'a.pth'),
        # Weights to start from if there is nothing to continue.
        (dict(resume=True, load_from='a.pth'), 'b.pth', 'auto'),
    ],
)
def test_a_config_may_resume_as_in_mmengine(
    config: dict, load_from: str | None, expected: str | None
):
    assert resume_of(Config(config), load_from) == expected


def test_what_a_config_resumes_is_left_to_the_arguments(tmp_path: Path):
    config = _config()
    config.resume = True
    choose_start(ConfigView(config), tmp_path)
    assert not config.resume


def test_a_config_that_resumes_is_continued_and_started_over_only_on_demand(tmp_path: Path):
    def run(epochs: int, **how: bool) -> Runner:
        config = quick(toy_config(tmp_path, epochs, resume=True))
        config.experiment_name = f'config_resumes_{epochs}_{how}'
        return run_training(config, **how)

    assert run(1).epoch == 1  # nothing to continue yet
    assert names(tmp_path) == ['epoch_1.pth']
    runner = run(2)
    assert runner.epoch == 2 and runner.cfg.load_from == str(tmp_path / 'epoch_1.pth')
    for logs in tmp_path.glob('*_*/'):  # named by the second in which a run began
        shutil.rmtree(logs)
    assert run(1, overwrite=True).cfg.get('load_from') is None
    assert names(tmp_path) == ['epoch_1.pth']


def test_a_run_with_checkpoints_in_another_folder_is_continued(tmp_path: Path):
    def run(epochs: int, resume: str | None = None) -> Runner:
        config = quick(toy_config(tmp_path / 'run', epochs))
        config.default_hooks.checkpoint.out_dir = str(tmp_path / 'large_disk')
        config.experiment_name = f'out_dir_{epochs}'
        return run_training(config, resume=resume)

    run(1)
    assert names(tmp_path / 'run') == [] and names(tmp_path / 'large_disk/run') == ['epoch_1.pth']
    runner = run(2, resume='auto')
    assert runner.cfg.load_from == str(tmp_path / 'large_disk/run/epoch_1.pth')
    assert runner.epoch == 2 and 'resumed epoch: 1, iter: 3' in log_of(tmp_path / 'run')


def test_the_best_checkpoint_in_another_folder_is_not_forgotten(tmp_path: Path):
    def run(epochs: int, resume: str | None = None) -> Runner:
        config = quick(evaluated(toy_config(tmp_path / 'run', epochs), save_best='score'))
        config.default_hooks.checkpoint.update(out_dir=str(tmp_path / 'disk'), rule='less')
        config.experiment_name = f'best_in_out_dir_{epochs}'
        return run_training(config, resume=resume)

    run(1)
    hub = run(2, resume='auto').message_hub
    assert hub.get_info('best_ckpt') == str(tmp_path / 'disk/run/best_score_epoch_1.pth')


def test_the_older_name_of_weights_is_known(tmp_path: Path):
    """As of mmseg's models, which take ``pretrained`` beside the backbone."""

    def view() -> ConfigView:
        backbone = dict(type='ResNetV1c', depth=18)
        model = dict(type='EncoderDecoder', pretrained='old.pth', backbone=backbone)
        return ConfigView(Config(dict(model=model, default_scope='mmseg')))

    assert view().starting_weights == 'old.pth'
    with pytest.raises(UserError, match='no file old.pth to start from'):
        choose_start(view(), tmp_path)
    (tmp_path / 'new.pth').touch()
    changed = view()
    choose_start(changed, tmp_path, pretrained=str(tmp_path / 'new.pth'))
    assert changed.model.pretrained is None
    assert changed.starting_weights == str(tmp_path / 'new.pth')


def test_a_boolean_is_no_checkpoint(tmp_path: Path):
    with pytest.raises(UserError, match=r"`resume=True`: expected 'auto', or the path"):
        choose_start(ConfigView(toy_config(tmp_path, 1)), tmp_path, resume=True)
