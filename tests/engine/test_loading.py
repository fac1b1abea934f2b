import copy
import json
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace

import attacks
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.evaluator import BaseMetric, Evaluator
from mmengine.infer import BaseInferencer
from mmengine.logging import HistoryBuffer
from mmengine.model import BaseModel, BaseTTAModel
from mmengine.runner import Runner
from mmengine.runner import checkpoint as mmengine_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader, load_checkpoint
from torch import nn
from torch.utils.data import Dataset

from ptnt_mm.checkpoints.read import cache_path, read_checkpoint
from ptnt_mm.engine.safe_loading import make_loading_safe, without_config
from ptnt_mm.engine.starting_weights import use_pretrained
from ptnt_mm.engine.strict_loading import load_strictly
from ptnt_mm.models import TNT, PyramidTNT
from ptnt_mm.models.weights.pretrained import CheckpointError, load_pretrained

pytestmark = pytest.mark.slow

ARCH = dict(
    depths=(1, 1, 1, 1),
    inner_depths=(1, 1, 1, 1),
    outer_dims=(8, 8, 8, 8),
    inner_dims=(2, 2, 2, 2),
    outer_heads=(1, 1, 1, 1),
    inner_heads=(1, 1, 1, 1),
    pretrain_img_size=64,
)
TNT_ARCH = dict(depth=1, outer_dim=8, inner_dim=2, outer_heads=1, inner_heads=1, words=16)


class Detector(BaseModel):
    """A minimal backbone and head."""

    def __init__(self, pretrain_img_size=None, num_classes=2, arch=ARCH, extra=False):
        super().__init__()
        self.backbone = PyramidTNT(arch, pretrain_img_size=pretrain_img_size)
        self.bbox_head = nn.Linear(self.backbone.out_channels[-1], num_classes)
        if extra:
            self.neck = nn.Linear(2, 2)

    def forward(self, inputs, data_samples=None, mode='tensor'):
        out = self.bbox_head(self.backbone(torch.stack(inputs))[-1].mean((2, 3)))
        return {'loss': out.square().mean()} if mode == 'loss' else [out]


class Averaged(BaseTTAModel):
    def merge_preds(self, data_samples_list):
        return [samples[0] for samples in data_samples_list]


class Pictures(Dataset):
    metainfo = dict(classes=('cat', 'dog'))

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return dict(inputs=torch.full((3, 64, 64), float(i)))


class Score(BaseMetric):
    """A metric that improves each time."""

    calls = 0

    def process(self, data_batch, data_samples):
        self.results.append(0)

    def compute_metrics(self, results):
        Score.calls += 1
        return {'score': float(Score.calls)}


def make_runner(work_dir, model=None, hooks=(), guard=True, epochs=1, **settings):
    """A runner built by MMEngine from a config, with the tests' data and model."""
    sampler = dict(type='DefaultSampler')
    loader = dict(batch_size=2, dataset=Pictures(), sampler=sampler, num_workers=0)
    guards = [dict(type='CheckpointGuardHook')] if guard else []
    return Runner(
        model=model or Detector(),
        work_dir=str(work_dir),
        train_dataloader=copy.copy(loader),
        val_dataloader=copy.copy(loader),
        test_dataloader=copy.copy(loader),
        train_cfg=dict(by_epoch=True, max_epochs=epochs, val_interval=1),
        val_cfg=dict(),
        test_cfg=dict(),
        val_evaluator=Evaluator(Score()),
        test_evaluator=Evaluator(Score()),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.01, momentum=0.9)),
        param_scheduler=dict(type='MultiStepLR', milestones=[5]),
        default_hooks=dict(
            checkpoint=dict(type='CheckpointHook', interval=1, save_best='score', rule='greater'),
            logger=dict(type='LoggerHook', interval=1),
        ),
        custom_hooks=[*guards, *hooks],
        experiment_name=f'{work_dir.parent.name}_{work_dir.name}_{id(loader)}',
        cfg=Config(dict(marker='current')),
        default_scope='mmengine',
        log_level='WARNING',
        **settings,
    )


EMA = dict(type='EMAHook', momentum=0.5)


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """A checkpoint of one epoch, and the runner that wrote it."""
    work_dir = tmp_path_factory.mktemp('trained') / 'run'
    runner = make_runner(work_dir)
    runner.train()
    return work_dir / 'epoch_1.pth', runner


@pytest.fixture(scope='module')
def averaged(tmp_path_factory):
    """A checkpoint of one epoch with moving averages."""
    work_dir = tmp_path_factory.mktemp('averaged') / 'run'
    runner = make_runner(work_dir, hooks=[EMA])
    runner.train()
    return work_dir / 'epoch_1.pth', runner


def changed(path, source, change):
    """Write a checkpoint's copy after ``change(checkpoint)``."""
    checkpoint = read_checkpoint(source)
    change(checkpoint)
    torch.save(checkpoint, path)
    return path


def test_resume_gives_back_all_that_was_saved(tmp_path, trained):
    path, first = trained
    runner = make_runner(tmp_path / 'run', epochs=2, resume=True, load_from=str(path))
    kept = {}

    class Look(type(first.hooks[0]).__mro__[-2]):
        def before_train(self, runner):
            kept['weights'] = copy.deepcopy(runner.model.state_dict())
            kept['log'] = copy.deepcopy(runner.message_hub.log_scalars)
            kept['momentum'] = copy.deepcopy(runner.optim_wrapper.state_dict()['state'])
            kept['epoch'] = runner.epoch

    runner.register_hook(Look(), 'VERY_LOW')
    runner.train()
    saved = read_checkpoint(path)
    assert kept['epoch'] == 1 and runner.epoch == 2
    for key, weight in saved['state_dict'].items():
        torch.testing.assert_close(kept['weights'][key].cpu(), weight, rtol=0, atol=0)
    for index, state in saved['optimizer']['state'].items():
        ours = kept['momentum'][index]['momentum_buffer'].cpu()
        torch.testing.assert_close(ours, state['momentum_buffer'], rtol=0, atol=0)
    for name, buffer in saved['message_hub']['log_scalars'].items():
        assert type(kept['log'][name]) is HistoryBuffer
        for ours, theirs in zip(kept['log'][name].data, buffer.data, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    before = first.message_hub.get_scalar('train/loss').data[0]
    np.testing.assert_array_equal(kept['log']['train/loss'].data[0], before)


def test_the_next_checkpoint_has_the_current_config(tmp_path, trained):
    path, _ = trained
    old = changed(tmp_path / 'old.pth', path, lambda c: c.update(attacks.store_config(c, 'old=1')))
    make_runner(tmp_path / 'run', epochs=2, resume=True, load_from=str(old)).train()
    after = read_checkpoint(tmp_path / 'run' / 'epoch_2.pth')
    assert "marker = 'current'" in after['meta']['cfg']
    assert "marker = 'current'" in after['message_hub']['runtime_info']['cfg']
    assert 'config' not in after['meta']


@pytest.fixture(params=[attacks.command_config, attacks.registry_config])
def with_stored_config(request, tmp_path, trained):
    """A checkpoint whose config would run a command, and the file that it would write."""
    canary = tmp_path / 'canary'
    stored = attacks.store_config(read_checkpoint(trained[0]), request.param(canary))
    torch.save(stored, tmp_path / 'bad.pth')
    return tmp_path / 'bad.pth', canary


@pytest.mark.parametrize('guard', [True, False])
def test_resume_runs_no_stored_config(tmp_path, with_stored_config, guard):
    path, canary = with_stored_config
    runner = make_runner(tmp_path / 'run', guard=guard, epochs=2, resume=True, load_from=str(path))
    runner.train()
    assert runner.epoch == 2
    assert not canary.exists()


def test_the_guard_drops_the_config_even_after_another_loader(tmp_path, trained):
    """Another plugin may replace our loader with its own."""
    canary = tmp_path / 'canary'
    checkpoint = attacks.store_config(read_checkpoint(trained[0]), attacks.command_config(canary))
    ours = CheckpointLoader._schemes['']
    CheckpointLoader.register_scheme('', lambda *args, **kw: checkpoint, force=True)
    try:
        CheckpointLoader._schemes[''].__name__ = 'load_from_elsewhere'
        make_runner(tmp_path / 'run', epochs=2, resume=True, load_from='x.pth').train()
    finally:
        CheckpointLoader.register_scheme('', ours, force=True)
    assert not canary.exists()


def test_hidden_config_is_dropped_too():
    """An OrderedDict in a file may have attributes that shadow its methods."""
    meta = OrderedDict(cfg='bad', epoch=1)
    meta.pop = meta.get = lambda *args: None
    clean = without_config({'meta': meta, 'state_dict': {}})
    assert dict(clean['meta']) == {'epoch': 1}


def test_other_things_of_a_description_stay():
    meta = {'runtime_info': 3, 'epoch': 1}
    assert without_config({'meta': meta})['meta'] == meta


class Inferencer(BaseInferencer):
    """MMEngine's inferencer, without its pictures."""

    def _init_pipeline(self, cfg):
        return lambda x: x

    def visualize(self, inputs, preds, **kwargs):
        pass

    def postprocess(self, preds, visualization, **kwargs):
        pass


def test_inferencer_runs_no_stored_config(tmp_path, with_stored_config):
    path, canary = with_stored_config
    with pytest.raises(CheckpointError, match='never executed here. Pass a config yourself'):
        Inferencer(weights=str(path))
    without_hub = changed(tmp_path / 'old.pth', path, lambda c: c.pop('message_hub'))
    with pytest.raises(ValueError, match='Cannot find the config'):
        Inferencer(weights=str(without_hub))
    assert not canary.exists()


def det_inferencer(**arguments):
    from mmdet.apis import DetInferencer

    return DetInferencer(**arguments, device='cpu', show_progress=False)


def seg_inferencer(**arguments):
    from mmseg.apis import MMSegInferencer

    return MMSegInferencer(**arguments, device='cpu')


@pytest.mark.parametrize('attack', attacks.MAIN)
def test_no_command_runs_through_pretrained(tmp_path, attack):
    canary = tmp_path / 'canary'
    content = {'state_dict': attacks.REFUSED[attack](canary)}
    path = attacks.write_zip(tmp_path / 'bad.pth', content)
    config = Config(dict(model=dict(type='Any', backbone=dict(type='PyramidTNT', arch=ARCH))))
    use_pretrained(config, str(path))
    backbone = dict(config.model.backbone)
    backbone.pop('type')
    before = attacks.snapshot()
    with pytest.raises(CheckpointError, match='refused'):
        PyramidTNT(**backbone).init_weights()
    assert not canary.exists() and attacks.snapshot() == before


def test_det_inferencer_runs_no_stored_config(with_stored_config):
    path, canary = with_stored_config
    with pytest.raises(CheckpointError, match='never executed here'):
        det_inferencer(weights=str(path))
    assert not canary.exists()


@pytest.mark.parametrize('attack', attacks.MAIN)
def test_no_command_runs_through_mmengine(tmp_path, attack):
    canary = tmp_path / 'canary'
    content = {'state_dict': {}, 'x': attacks.REFUSED[attack](canary)}
    path = str(attacks.write_zip(tmp_path / 'bad.pth', content))
    for how in (dict(resume=True), dict(resume=False)):
        with pytest.raises(CheckpointError, match='refused'):
            make_runner(tmp_path / f'{how}', load_from=path, **how).train()
    with pytest.raises(CheckpointError, match='refused'):
        make_runner(tmp_path / 'test', load_from=path).test()
    with pytest.raises(CheckpointError, match='refused'):
        load_checkpoint(nn.Linear(1, 1), path)
    with pytest.raises(CheckpointError, match='refused'):
        Inferencer(weights=path)
    with pytest.raises(CheckpointError, match='refused'):
        load_strictly(nn.Linear(1, 1), path)
    with pytest.raises(CheckpointError, match='refused'):
        det_inferencer(weights=path)
    with pytest.raises(CheckpointError, match='refused'):
        seg_inferencer(model=Config(dict(model={})), weights=path)
    assert not canary.exists()


def test_forced_unsafe_loading_is_refused_everywhere(tmp_path, monkeypatch):
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    canary = tmp_path / 'canary'
    path = str(attacks.write_zip(tmp_path / 'bad.pth', attacks.os_system(canary)))
    for name in (path, 'torchvision://resnet18', 'https://127.0.0.1/x.pth', 's3://bucket/x.pth'):
        with pytest.raises(CheckpointError, match='unset TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'):
            CheckpointLoader.load_checkpoint(name)
    with pytest.raises(CheckpointError, match='unset TORCH_FORCE'):
        make_runner(tmp_path / 'run', load_from=path).test()
    assert not canary.exists()


def test_other_schemes_lose_the_config_too():
    CheckpointLoader.register_scheme(
        'memory://', lambda name, map_location: {'meta': {'cfg': 'bad', 'epoch': 3}}, force=True
    )
    try:
        CheckpointLoader._schemes['memory://'].__name__ = 'load_from_memory'
        make_loading_safe()
        make_loading_safe()
        loaded = CheckpointLoader.load_checkpoint('memory://x')
    finally:
        del CheckpointLoader._schemes['memory://']
    assert dict(loaded['meta']) == {'epoch': 3}


# Where the loader of each scheme finds the address for a name.
LISTS = {
    'torchvision://': 'get_torchvision_models',
    'modelzoo://': 'get_torchvision_models',
    'open-mmlab://': 'get_external_models',
    'openmmlab://': 'get_external_models',
    'mmcls://': 'get_mmcls_models',
}


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """An empty hub folder for downloads."""
    monkeypatch.setenv('TORCH_HOME', str(tmp_path / 'torch'))
    monkeypatch.setattr(torch.hub, '_hub_dir', None)
    folder = tmp_path / 'torch' / 'hub' / 'checkpoints'
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    ('scheme', 'name'),
    [
        ('torchvision://', 'resnet50'),
        ('modelzoo://', 'resnet50'),
        ('open-mmlab://', 'detectron2/resnet50_caffe'),
        ('openmmlab://', 'detectron2/resnet50_caffe'),
        ('mmcls://', 'resnet50_v1d'),
    ],
)
def test_a_file_planted_in_the_hub_is_not_run(tmp_path, hub, scheme, name):
    canary = tmp_path / 'canary'
    models = getattr(mmengine_checkpoint, LISTS[scheme])()
    url = models[name]
    # Under torch's name for it and under ours.
    for path in (hub / Path(url).name, cache_path(url)):
        attacks.write_legacy(path, {'state_dict': attacks.os_system(canary)})
    with pytest.raises(CheckpointError, match=r"refused, it asks for 'os\.system'"):
        CheckpointLoader.load_checkpoint(f'{scheme}{name}')
    assert not canary.exists()


@pytest.mark.parametrize('scheme', LISTS)
def test_honest_files_of_the_hub_load(hub, monkeypatch, scheme):
    url = 'https://127.0.0.1/weights.pth'
    monkeypatch.setattr(mmengine_checkpoint, LISTS[scheme], lambda: {'model': url})
    torch.save({'backbone.w': torch.ones(2)}, cache_path(url))
    loaded = CheckpointLoader.load_checkpoint(f'{scheme}model')
    (weight,) = loaded.get('state_dict', loaded).values()
    assert weight.eq(1).all()


def from_s3(path, monkeypatch):
    backend = SimpleNamespace(get=lambda name: path.read_bytes())
    monkeypatch.setattr(mmengine_checkpoint, 'get_file_backend', lambda *a, **kw: backend)
    return 's3://bucket/w.pth'


def from_the_folder_of_mmengine(path, monkeypatch):
    monkeypatch.setenv('MMENGINE_HOME', str(path.parent))
    path.with_name('open_mmlab.json').write_text(json.dumps({'mine': path.name}))
    return 'open-mmlab://mine'


def from_a_plugin(path, monkeypatch):
    """A loader that was registered by another package, before ours was."""

    def load_from_plugin(name, map_location=None):
        return torch.load(path, map_location, weights_only=False)

    monkeypatch.setattr(CheckpointLoader, '_schemes', dict(CheckpointLoader._schemes))
    CheckpointLoader.register_scheme('plugin://', load_from_plugin)
    make_loading_safe()
    return 'plugin://x'


OTHER_LOADERS = (from_s3, from_the_folder_of_mmengine, from_a_plugin)


@pytest.mark.parametrize('source', OTHER_LOADERS)
def test_other_loaders_run_nothing(tmp_path, monkeypatch, source):
    canary = tmp_path / 'canary'
    path = attacks.write_legacy(tmp_path / 'w.pth', {'state_dict': attacks.os_system(canary)})
    name = source(path, monkeypatch)
    with pytest.raises(CheckpointError, match=f"^{name}: refused, it asks for 'os.system'"):
        CheckpointLoader.load_checkpoint(name)
    assert not canary.exists()


@pytest.mark.parametrize('source', OTHER_LOADERS)
def test_other_loaders_load_what_is_honest(tmp_path, monkeypatch, trained, source):
    path = changed(tmp_path / 'w.pth', trained[0], lambda checkpoint: None)
    loaded = CheckpointLoader.load_checkpoint(source(path, monkeypatch))
    assert loaded['state_dict'].keys() == read_checkpoint(path)['state_dict'].keys()
    assert type(loaded['message_hub']['log_scalars']['train/loss']) is HistoryBuffer
    assert 'cfg' not in loaded['meta']


def test_plain_weights_of_other_models_still_load(tmp_path):
    other = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    torch.save(other.state_dict(), tmp_path / 'other.pth')
    mine = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    loaded = load_checkpoint(mine, str(tmp_path / 'other.pth'), strict=True)
    torch.testing.assert_close(mine[0].weight, other[0].weight)
    # Modules find the version of their weights in the state dict's own attribute.
    assert loaded._metadata['1']['version'] == 2


def test_what_was_loaded_can_be_saved_and_loaded_again(tmp_path, trained):
    """As MMEngine does when it publishes its best checkpoint."""
    loaded = CheckpointLoader.load_checkpoint(str(trained[0]))
    torch.save(loaded, tmp_path / 'again.pth')
    again = read_checkpoint(tmp_path / 'again.pth')
    assert dict(again['meta']) == dict(loaded['meta'])
    assert copy.deepcopy(loaded)['meta'] == dict(loaded['meta'])


@pytest.mark.parametrize(('entry', 'name'), [('meta', 'meta'), ('message_hub', 'message_hub')])
def test_strange_descriptions_are_refused(entry, name):
    with pytest.raises(CheckpointError, match=f'{name} is a list, not a dict'):
        without_config({entry: [1]})


def test_test_loads_all_weights(tmp_path, trained):
    path, first = trained
    runner = make_runner(tmp_path / 'run', load_from=str(path))
    runner.test()
    for key, weight in read_checkpoint(path)['state_dict'].items():
        torch.testing.assert_close(runner.model.state_dict()[key], weight, rtol=0, atol=0)


def test_test_with_tta_loads_all_weights(tmp_path, trained):
    tta = Averaged(Detector())
    make_runner(tmp_path / 'run', model=tta, load_from=str(trained[0])).load_or_resume()
    for key, weight in read_checkpoint(trained[0])['state_dict'].items():
        torch.testing.assert_close(tta.module.state_dict()[key], weight, rtol=0, atol=0)
    bad = Averaged(Detector(num_classes=9))
    with pytest.raises(CheckpointError, match='number of classes'):
        make_runner(tmp_path / 'bad', model=bad, load_from=str(trained[0])).load_or_resume()


def unchanged(checkpoint):
    """The weights are fine, but the model is another."""


def of_a_resnet(checkpoint):
    checkpoint['state_dict'] = {'layer1.0.conv1.weight': torch.zeros(1)}


def without_weights(checkpoint):
    checkpoint['state_dict'] = {}


def with_nan(checkpoint):
    checkpoint['state_dict']['bbox_head.bias'][0] = float('nan')


MISFITS = (
    (
        dict(num_classes=5),
        unchanged,
        'bbox_head.weight is .2, 8., the model has .5, 8.*num_classes',
    ),
    (
        dict(pretrain_img_size=128),
        unchanged,
        'backbone.outer_pos is .1, 64, 8.*pretrain_img_size=64',
    ),
    (dict(arch='tiny'), unchanged, 'of an unknown arch, 64 px, the model has PyramidTNT tiny'),
    (dict(extra=True), unchanged, 'misfit.pth .*: it lacks 2 weights: neck.weight, neck.bias'),
    ({}, of_a_resnet, 'looks like a ResNet'),
    ({}, without_weights, 'misfit.pth contains no weights'),
    ({}, with_nan, 'misfit.pth: .*NaN or infinity: bbox_head.bias'),
)


@pytest.mark.parametrize(('settings', 'change', 'message'), MISFITS)
def test_misfits_are_refused_by_test_and_resume(tmp_path, trained, settings, change, message):
    path = str(changed(tmp_path / 'misfit.pth', trained[0], change))
    model = Detector(**settings)
    with pytest.raises(CheckpointError, match=message):
        make_runner(tmp_path / 'test', model=model, load_from=path).test()
    model = Detector(**settings)
    with pytest.raises(CheckpointError, match=message):
        make_runner(tmp_path / 'go', model=model, load_from=path, resume=True, epochs=2).train()


def weights_at_start(runner):
    """Load as training does, up to its first iteration."""
    runner.train_loop  # noqa: B018  builds it
    runner.optim_wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    runner.call_hook('before_run')
    runner.load_or_resume()
    return runner.model.state_dict()


def test_fine_tuning_allows_another_head(tmp_path, trained):
    model = Detector(num_classes=7, extra=True)
    runner = make_runner(tmp_path / 'run', model=model, load_from=str(trained[0]))
    ours = weights_at_start(runner)
    for key, weight in read_checkpoint(trained[0])['state_dict'].items():
        if key.startswith('backbone.'):
            torch.testing.assert_close(ours[key], weight, rtol=0, atol=0)


@pytest.mark.parametrize('prefix', ['', 'module.'])
@pytest.mark.parametrize('hooks', [[], [EMA]])
def test_fine_tuning_converts_position_tables(tmp_path, trained, prefix, hooks):
    state = {prefix + key: w for key, w in read_checkpoint(trained[0])['state_dict'].items()}
    torch.save({'meta': {}, 'state_dict': state}, tmp_path / 'start.pth')
    expected = PyramidTNT(ARCH, pretrain_img_size=128)
    load_pretrained(expected, tmp_path / 'start.pth')
    model = Detector(pretrain_img_size=128)
    runner = make_runner(
        tmp_path / 'run', model=model, hooks=hooks, load_from=str(tmp_path / 'start.pth')
    )
    ours = weights_at_start(runner)
    for key, weight in expected.state_dict().items():
        torch.testing.assert_close(ours[f'backbone.{key}'], weight, rtol=0, atol=0)
    if hooks:
        ema = next(hook for hook in runner.hooks if hasattr(hook, 'ema_model')).ema_model.module
        torch.testing.assert_close(ema.backbone.outer_pos, expected.outer_pos)


def test_bare_weights_and_moving_averages(tmp_path, trained):
    """As ``ptnt checkpoint convert`` writes them."""
    saved = read_checkpoint(trained[0])['state_dict']
    torch.save(saved, tmp_path / 'bare.pth')
    runner = make_runner(tmp_path / 'run', hooks=[EMA], load_from=str(tmp_path / 'bare.pth'))
    ours = weights_at_start(runner)
    ema = next(hook for hook in runner.hooks if hasattr(hook, 'ema_model')).ema_model.module
    for key, weight in saved.items():
        torch.testing.assert_close(ours[key], weight, rtol=0, atol=0)
    for weight, average in zip(runner.model.parameters(), ema.parameters(), strict=True):
        torch.testing.assert_close(weight, average, rtol=0, atol=0)


def without_a_block(checkpoint):
    state = checkpoint['state_dict']
    for key in [key for key in state if key.startswith('backbone.stages.2.blocks.0.outer_mlp')]:
        del state[key]


def test_fine_tuning_needs_the_whole_backbone(tmp_path, trained):
    path = changed(tmp_path / 'part.pth', trained[0], without_a_block)
    with pytest.raises(CheckpointError, match=r'lacks 4 weights: backbone\.stages\.2\.blocks\.0'):
        make_runner(tmp_path / 'run', load_from=str(path)).train()


def test_fine_tuning_another_backbone_names_that_of_the_file(tmp_path, trained):
    model = Detector()
    model.backbone = nn.Conv2d(3, 8, 1)
    with pytest.raises(CheckpointError, match='looks like PyramidTNT of .*: use a checkpoint of'):
        make_runner(tmp_path / 'run', model=model, load_from=str(trained[0])).train()


@pytest.mark.parametrize(('kind', 'arch'), [(PyramidTNT, ARCH), (TNT, TNT_ARCH)])
def test_fine_tuning_from_a_bare_backbone_is_explained(tmp_path, kind, arch):
    model = Detector()
    model.backbone = kind(arch)
    torch.save(model.backbone.state_dict(), tmp_path / 'bare.pth')
    with pytest.raises(CheckpointError, match='backbone.* as --pretrained'):
        make_runner(tmp_path / 'run', model=model, load_from=str(tmp_path / 'bare.pth')).train()


def test_guard_works_with_moving_averages(tmp_path, averaged):
    path, first = averaged
    saved = read_checkpoint(path)
    ema = next(hook for hook in first.hooks if hasattr(hook, 'ema_model')).ema_model
    key = 'bbox_head.weight'
    torch.testing.assert_close(saved['state_dict'][key], ema.module.state_dict()[key])
    # Resume: the averages go back to the hook, the weights to the model.
    runner = make_runner(tmp_path / 'run', hooks=[EMA], epochs=2, resume=True, load_from=str(path))
    kept = {}
    original = runner.call_hook

    def call_hook(name, **kwargs):
        original(name, **kwargs)
        if name == 'before_train':
            kept.update(copy.deepcopy(runner.model.state_dict()))

    runner.call_hook = call_hook
    runner.train()
    torch.testing.assert_close(kept[key], saved['ema_state_dict'][f'module.{key}'])
    # Test: the averages are tested, with the hook or without it.
    plain = make_runner(tmp_path / 'test', load_from=str(path))
    plain.test()
    torch.testing.assert_close(plain.model.state_dict()[key], saved['state_dict'][key])


def test_misfit_is_refused_before_the_averages_are_copied(tmp_path, averaged):
    model = Detector(num_classes=5)
    runner = make_runner(
        tmp_path / 'run', model, hooks=[EMA], epochs=2, resume=True, load_from=str(averaged[0])
    )
    with pytest.raises(CheckpointError, match='a different number of classes'):
        runner.train()


def test_a_checkpoint_may_not_delete_files_elsewhere(tmp_path, trained):
    victim = tmp_path / 'thesis.txt'
    victim.write_text('years of work')

    def claim(checkpoint):
        info = checkpoint['message_hub']['runtime_info']
        info.update(best_ckpt=str(victim), best_score=-1.0, keep_ckpt_ids=['../../thesis'])

    path = changed(tmp_path / 'bad.pth', trained[0], claim)
    resumed = dict(epochs=2, resume=True, load_from=str(path))
    make_runner(tmp_path / 'run', hooks=[dict(type='ResumeHook')], **resumed).train()
    assert victim.exists()
    # Without the hook MMEngine deletes it, so the test is meaningful.
    make_runner(tmp_path / 'unguarded', **resumed).train()
    assert not victim.exists()


def test_own_best_checkpoint_is_replaced_after_resume(tmp_path):
    work_dir = tmp_path / 'run'
    make_runner(work_dir).train()
    make_runner(work_dir, epochs=2, resume=True, load_from=str(work_dir / 'epoch_1.pth')).train()
    assert [path.name for path in work_dir.glob('best_*')] == ['best_score_epoch_2.pth']
