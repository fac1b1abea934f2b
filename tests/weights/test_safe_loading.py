"""Loading a checkpoint, by any way, runs nothing that is in it."""

import copy
import json
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace

import attacks
import pytest
import torch
from detector_runs import ARCH, changed, make_runner
from mmengine.config import Config
from mmengine.infer import BaseInferencer
from mmengine.logging import HistoryBuffer
from mmengine.runner import checkpoint as mmengine_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader, load_checkpoint
from torch import nn

from ptnt_mm.models import PyramidTNT
from ptnt_mm.weights.mmengine import load_strictly, make_loading_safe, without_config
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import cache_path, read_checkpoint
from ptnt_mm.workbench.config.initial_weights import use_pretrained
from ptnt_mm.workbench.config.view import ConfigView

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _safe() -> None:
    make_loading_safe()


def test_the_next_checkpoint_has_the_current_config(tmp_path, trained):
    path, _ = trained
    old = changed(tmp_path / 'old.pth', path, lambda c: c.update(attacks.store_config(c, 'old=1')))
    make_runner(tmp_path / 'run', epochs=2, resume=True, load_from=str(old)).train()
    after = read_checkpoint(tmp_path / 'run' / 'epoch_2.pth')
    for text in (after['meta']['cfg'], after['message_hub']['runtime_info']['cfg']):
        assert Config.fromstring(text, '.py').marker == 'current'
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
    """With the hook, or after ``make_loading_safe``."""
    path, canary = with_stored_config
    runner = make_runner(tmp_path / 'run', guard=guard, epochs=2, resume=True, load_from=str(path))
    runner.train()
    assert runner.epoch == 2
    assert not canary.exists()


def test_hidden_config_is_dropped_too():
    """An OrderedDict in a file may have attributes that shadow its methods."""
    meta = OrderedDict(cfg='bad', epoch=1)
    meta.pop = meta.get = lambda *args: None
    clean = without_config({'meta': meta, 'state_dict': {}})
    assert dict(clean['meta']) == {'epoch': 1}


def test_other_metadata_is_kept():
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
    use_pretrained(ConfigView(config), str(path))
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
def test_metadata_that_is_not_a_dict_is_refused(entry, name):
    with pytest.raises(CheckpointError, match=f'{name} is a list, not a dict'):
        without_config({entry: [1]})
