"""The hooks and the loop that every run gets."""

import subprocess
import sys
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.hooks import CheckpointHook
from mmengine.registry import HOOKS as ROOT_HOOKS
from mmengine.registry import LOOPS, Registry
from mmengine.runner import IterBasedTrainLoop

from ptnt_mm import hooks
from ptnt_mm.workbench.config.safeguards import added_hooks, safeguard_names, with_safeguards
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.config.zoo import config_from_file

HOOKS = [hook.type for hook in added_hooks()]


def names(config: Config) -> list:
    return [hook['type'] for hook in config.custom_hooks]


def test_the_list_has_all_hooks_but_that_of_checkpoints():
    every = {name for name in hooks.__all__ if name.endswith('Hook')} | {'HealthHook'}
    on_request = {'CompileHook', 'WholeCheckpointHook'}
    assert set(HOOKS) == every - on_request and len(HOOKS) == len(set(HOOKS))


def test_a_config_of_another_package_gets_all_of_them():
    config = Config(dict(custom_hooks=[dict(type='NumClassCheckHook')]))
    config = with_safeguards(ConfigView(config))
    assert names(config) == ['NumClassCheckHook', *HOOKS]
    assert config.default_hooks.checkpoint == dict(type='WholeCheckpointHook', interval=1)


def test_what_is_named_keeps_its_settings():
    config = Config(dict(custom_hooks=[dict(type='SkipCorruptImagesHook', limit=3)]))
    config = with_safeguards(ConfigView(config))
    assert config.custom_hooks[0] == dict(type='SkipCorruptImagesHook', limit=3)
    assert len(names(config)) == len(HOOKS)


def test_classes_and_scopes_are_names_too():
    for kind in (CheckpointHook, 'mmengine.CheckpointHook', 'CheckpointHook'):
        config = Config(
            dict(
                custom_hooks=[dict(type=ROOT_HOOKS.get('HealthHook'))],
                default_hooks=dict(checkpoint=dict(type=kind, interval=7)),
            )
        )
        config = with_safeguards(ConfigView(config))
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
        config = with_safeguards(ConfigView(config))
        assert config.train_cfg == ours


def test_other_loops_stay():
    for loop in (
        dict(by_epoch=True, max_epochs=3),
        dict(type='EpochBasedTrainLoop', max_epochs=3),
        dict(type='MyIterBasedTrainLoop', max_iters=9),
    ):
        config = Config(dict(train_cfg=loop))
        config = with_safeguards(ConfigView(config))
        assert config.train_cfg == loop


def test_checkpoints_can_be_disabled():
    config = Config(dict(default_hooks=dict(checkpoint=None)))
    config = with_safeguards(ConfigView(config))
    assert config.default_hooks.checkpoint is None


@pytest.fixture(scope='module')
def _namesakes() -> None:
    """Somebody's classes with the names of MMEngine's and ours."""
    of_theirs = {ROOT_HOOKS: ('CheckpointHook', 'StopAtNaNHook'), LOOPS: ('IterBasedTrainLoop',)}
    for root, namesakes in of_theirs.items():
        registry = Registry(root.name, parent=root, scope='mine')
        for name in namesakes:
            registry.register_module(name, module=type(name, (), {}))


@pytest.mark.usefixtures('_namesakes')
@pytest.mark.parametrize(
    ('scope', 'prefix', 'beside'),
    [('mmengine', 'mine.', {}), ('mine', '', {}), ('mmengine', '', dict(_scope_='mine'))],
)
def test_a_namesake_stays_and_takes_no_place(scope: str, prefix: str, beside: dict):
    hook, loop = f'{prefix}CheckpointHook', f'{prefix}IterBasedTrainLoop'
    given = dict(
        default_scope=scope,
        default_hooks=dict(checkpoint=dict(type=hook, **beside)),
        train_cfg=dict(type=loop, max_iters=9, **beside),
        custom_hooks=[dict(type=f'{prefix}StopAtNaNHook', **beside)],
    )
    config = with_safeguards(ConfigView(Config(given)))
    assert config.default_hooks.checkpoint.type == hook and config.train_cfg.type == loop
    assert names(config) == [f'{prefix}StopAtNaNHook', *HOOKS]


@pytest.mark.parametrize('name', safeguard_names())
def test_each_can_be_left_out(name: str):
    given = dict(
        custom_hooks=[dict(type=name)] if name in HOOKS else [],
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=9),
        safeguards={name: None},
    )
    config = with_safeguards(ConfigView(Config(given)))
    checkpoint = config.get('default_hooks', {}).get('checkpoint', {}).get('type')
    used = {*names(config), checkpoint, config.train_cfg.type}
    assert used & {*safeguard_names()} == {*safeguard_names()} - {name}


PLAIN = (
    ('mmdet', 'retinanet/retinanet_r50_fpn_1x_coco.py'),
    ('mmseg', 'pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024.py'),
    ('mmpretrain', 'resnet/resnet18_8xb16_cifar10.py'),
)
READ = """
import sys
from mmengine.config import Config
from mmengine.registry import HOOKS, LOOPS
assert 'ptnt_mm' not in sys.modules
for file in sys.argv[1:]:
    config = Config.fromfile(file)
    for hook in (*config.custom_hooks, config.default_hooks.checkpoint):
        HOOKS.build(hook)
    assert LOOPS.get(config.train_cfg.get('type', 'EpochBasedTrainLoop'))
"""


def test_mmengine_reads_the_stored_config_of_each_host_by_itself(tmp_path: Path):
    files = []
    for host, path in PLAIN:
        folder = Path(pytest.importorskip(host).__file__).parent
        config = with_safeguards(ConfigView(config_from_file(folder / '.mim' / 'configs' / path)))
        files.append(str(tmp_path / f'{host}.py'))
        config.dump(files[-1])
    done = subprocess.run([sys.executable, '-c', READ, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize('imports', [None, dict(imports='mine'), dict(imports=['mine', 'ptnt_mm'])])
def test_own_imports_are_kept(imports: dict | None):
    config = with_safeguards(ConfigView(Config(dict(custom_imports=imports))))
    own = [] if imports is None else ['mine']
    assert [name for name in config.custom_imports.imports if name != 'ptnt_mm'] == [
        *own,
        'ptnt_mm.workbench',
        'ptnt_mm.weights.safe_loading',
    ]
