"""LoRA adapters of a backbone in a detector's config: trained, saved, resumed and tested."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from manual import ROOT, blocks
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.model import Sequential
from mmengine.optim import build_optim_wrapper
from mmengine.runner import Runner
from torch import Tensor, nn

import ptnt_mm
from ptnt_mm import api
from ptnt_mm.registry import HOOKS, MODELS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.published import locate
from ptnt_mm.weights.reader.read import read_checkpoint
from ptnt_mm.workbench.check.weights import check_weights_fit
from ptnt_mm.workbench.config.initial_weights import check_start, use_pretrained
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.demo.dataset import DemoSpec, make_demo_data

pytestmark = pytest.mark.slow

WEIGHTS = 'ptnt_ti_distilled'


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's folder, with the config of the page next to that of a small detector."""
    folder = tmp_path_factory.mktemp('project')
    make_demo_data(folder / 'demo', DemoSpec(train=4, val=2))
    config = ptnt_mm.get_config('demo_retinanet_ptnt_ti')
    norms = dict(norm_eval=True, norm_cfg=dict(type='BN', requires_grad=False))
    config.model.backbone.update(norms, init_cfg=dict(type='Pretrained', checkpoint=WEIGHTS))
    for split in ('train', 'val', 'test'):
        loader = config[f'{split}_dataloader']
        loader.update(num_workers=0, persistent_workers=False)
        loader.dataset.data_root = str(folder / 'demo')
    for evaluator in (config.val_evaluator, config.test_evaluator):
        evaluator.ann_file = str(folder / 'demo/annotations/instances_val.json')
    config.train_dataloader.batch_size = 2
    config.train_cfg.val_interval = 9
    config.dump(folder / 'config.py')
    page = blocks(ROOT / 'docs/other_libraries.md')
    (text,) = (block.text for block in page if 'LoRAModel' in block.text)
    (folder / 'lora.py').write_text(text)
    return folder


def run(folder: Path, work_dir: str, epochs: int, **how: object) -> Runner:
    config = read_config(folder / 'lora.py')
    config.experiment_name = f'{work_dir}_{epochs}'
    return api.train(config, folder / work_dir, epochs=epochs, **how)


@pytest.fixture(scope='module')
def whole(folder: Path) -> Runner:
    """A run of two epochs of two steps."""
    return run(folder, 'whole', 2)


def stored(runner: Runner, epoch: int) -> Mapping[str, Tensor]:
    return read_checkpoint(Path(runner.work_dir, f'epoch_{epoch}.pth'))['state_dict']


def assert_frozen(runner: Runner) -> None:
    """The network inside is that of the file."""
    learned = read_checkpoint(locate(WEIGHTS))
    own = dict(runner.model.backbone.module.named_parameters())
    own |= dict(runner.model.backbone.module.named_buffers())
    own = {key.replace('.original_layer', ''): value for key, value in own.items()}
    shared = [key for key in learned if key in own]
    assert len(shared) > 300 and all(own[key].equal(learned[key]) for key in shared)


def test_only_adapters_neck_and_head_are_trained_and_saved(whole: Runner):
    assert_frozen(whole)
    first, last = stored(whole, 1), stored(whole, 2)
    trained = {name for name, own in whole.model.named_parameters() if own.requires_grad}
    assert trained == {key for key in last if 'running' not in key and 'num_batches' not in key}
    assert all('.lora_' in key for key in last if key.startswith('backbone.'))
    assert all(not first[key].equal(last[key]) for key in last if key.endswith('lora_up.weight'))


def test_a_resumed_run_ends_with_the_same_adapters(folder: Path, whole: Runner):
    resumed = run(folder, 'resumed', 2, resume=Path(whole.work_dir, 'epoch_1.pth'))
    assert_frozen(resumed)
    expected = stored(whole, 2)
    for key, weight in stored(resumed, 2).items():
        torch.testing.assert_close(weight, expected[key], rtol=0, atol=0, msg=key)


@HOOKS.register_module()
class AssertsFrozen(Hook):
    """Looks at the model after a test."""

    has_looked = False

    def after_test(self, runner: Runner) -> None:
        assert_frozen(runner)
        AssertsFrozen.has_looked = True


def test_a_tested_model_has_the_network_of_the_file(folder: Path, whole: Runner):
    config = read_config(folder / 'lora.py')
    config.custom_hooks.append(dict(type='AssertsFrozen'))
    checkpoint = Path(whole.work_dir, 'epoch_2.pth')
    api.test(config, checkpoint, folder / 'tested')
    assert AssertsFrozen.has_looked


@pytest.mark.parametrize(
    'network',
    [
        dict(type='PyramidTNT', arch='tiny'),
        dict(type='mmengine.TNT', arch='small'),
        dict(type='CPVT', arch='tiny'),
        dict(type='TimmFeatures', model='pvt_v2_b0', out_indices=(1, 2, 3)),
    ],
    ids=lambda network: network['type'],
)
def test_a_network_with_adapters_loads_its_file_once(tmp_path: Path, network: dict):
    """Under the names of the file; those of its adapted layers are different."""
    plain = MODELS.build(network)
    torch.save(getattr(plain, 'pretrained_part', plain).state_dict(), tmp_path / 'start.pth')
    init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'start.pth'))
    settings = dict(
        type='mmpretrain.LoRAModel',
        module=dict(network, init_cfg=init_cfg),
        rank=2,
        targets=[dict(type='fc1')],
    )
    model = Sequential(MODELS.build(settings))  # as a detector around it
    assert not list(check_weights_fit(ConfigView(Config()), model))
    model.init_weights()
    learned, own = plain.state_dict(), dict(model[0].module.named_parameters())
    changed = [key for key, weight in learned.items() if key in own and not own[key].equal(weight)]
    assert not changed


def test_the_network_inside_is_the_backbone():
    backbone = dict(type='PyramidTNT', arch='tiny', init_cfg=dict(checkpoint=WEIGHTS))
    adapted = dict(type='mmpretrain.LoRAModel', module=backbone, rank=8)
    view = ConfigView(Config(dict(default_scope='mmdet', model=dict(backbone=adapted))))
    assert view.backbone.arch == 'tiny' and view.is_of_family and view.has_batch_norm
    assert view.starting_weights.endswith('.safetensors')


@pytest.mark.parametrize(
    'network',
    [
        dict(type='PyramidTNT', norm_eval=True),
        dict(type='PyramidTNT', init_cfg=dict(type='Pretrained', checkpoint=WEIGHTS)),
        dict(type='mmengine.TNT'),
        dict(type='mmdet.SwinTransformer'),
    ],
    ids=str,
)
def test_a_network_that_no_file_fixes_gets_no_adapters(network: dict):
    """Checkpoints lack it: other processes would have other weights or statistics."""
    adapted = dict(type='LoRAModel', module=network)
    view = ConfigView(Config(dict(default_scope='mmdet', model=dict(backbone=adapted))))
    message = r'checkpoints contain only the adapters .* set init_cfg=.* in model.backbone.module'
    with pytest.raises(UserError, match=message):
        check_start(view)
    with pytest.raises(UserError, match=f'^`pretrained=start.pth`: {message}'):
        use_pretrained(view, 'start.pth')


def test_rates_by_depth_are_refused():
    """LoRAModel forwards attributes, but the names of its layers are those of no depth."""
    inside = dict(type='PyramidTNT', arch='tiny')
    targets = [dict(type='fc1')]
    adapted = dict(type='mmpretrain.LoRAModel', module=inside, rank=2, targets=targets)
    detector = nn.Module()
    detector.backbone = MODELS.build(adapted)
    settings = dict(
        constructor='LayerDecayOptimWrapperConstructor',
        optimizer=dict(type='AdamW', lr=0.1),
        paramwise_cfg=dict(decay_rate=0.9),
    )
    with pytest.raises(UserError, match='^LoRAModel does not define the depth of its layers'):
        build_optim_wrapper(detector, settings)
