"""The hooks that every run gets."""

from mmengine.config import Config
from mmengine.hooks import CheckpointHook
from mmengine.runner import IterBasedTrainLoop

from ptnt_mm.engine import hooks
from ptnt_mm.engine.hooks.health import HealthHook
from ptnt_mm.engine.runner import safeguards, with_safeguards

HOOKS = [hook.type for hook in safeguards()]


def names(config: Config) -> list:
    return [hook['type'] for hook in config.custom_hooks]


def test_the_list_has_all_hooks_but_that_of_checkpoints():
    every = {name for name in hooks.__all__ if not name.startswith('Draw')}
    assert set(HOOKS) == every - {'WholeCheckpointHook'} and len(HOOKS) == len(set(HOOKS))


def test_a_config_of_another_package_gets_all_of_them():
    config = Config(dict(custom_hooks=[dict(type='NumClassCheckHook')]))
    config = with_safeguards(config)
    assert names(config) == ['NumClassCheckHook', *HOOKS]
    assert config.default_hooks.checkpoint == dict(type='WholeCheckpointHook', interval=1)


def test_what_is_named_keeps_its_settings():
    config = Config(dict(custom_hooks=[dict(type='SkipCorruptImagesHook', limit=3)]))
    config = with_safeguards(config)
    assert config.custom_hooks[0] == dict(type='SkipCorruptImagesHook', limit=3)
    assert len(names(config)) == len(HOOKS)


def test_classes_and_scopes_are_names_too():
    for kind in (CheckpointHook, 'mmengine.CheckpointHook', 'CheckpointHook'):
        config = Config(
            dict(
                custom_hooks=[dict(type=HealthHook)],
                default_hooks=dict(checkpoint=dict(type=kind, interval=7)),
            )
        )
        config = with_safeguards(config)
        assert 'HealthHook' not in names(config)
        assert config.default_hooks.checkpoint == dict(type='WholeCheckpointHook', interval=7)


def test_iterations_are_repeatable_whatever_the_loop_is_called():
    ours = dict(type='RepeatableIterBasedTrainLoop', max_iters=9)
    for name in (
        dict(type='IterBasedTrainLoop'),
        dict(type='mmengine.IterBasedTrainLoop'),
        dict(type=IterBasedTrainLoop),
        dict(by_epoch=False),
    ):
        config = Config(dict(train_cfg=dict(name, max_iters=9)))
        config = with_safeguards(config)
        assert config.train_cfg == ours


def test_other_loops_stay():
    for loop in (
        dict(by_epoch=True, max_epochs=3),
        dict(type='EpochBasedTrainLoop', max_epochs=3),
        dict(type='MyIterBasedTrainLoop', max_iters=9),
    ):
        config = Config(dict(train_cfg=loop))
        config = with_safeguards(config)
        assert config.train_cfg == loop


def test_checkpoints_can_be_disabled():
    config = Config(dict(default_hooks=dict(checkpoint=None)))
    config = with_safeguards(config)
    assert config.default_hooks.checkpoint is None
