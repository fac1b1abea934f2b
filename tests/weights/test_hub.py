"""Weights from a Hugging Face hub: a server in this process speaks its protocol."""

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hub_server import TOKEN, Hub, connect, serve
from huggingface_hub import constants
from mmengine.runner.checkpoint import load_checkpoint
from safetensors.torch import save
from torch import nn

from ptnt_mm.models import PyramidTNT
from ptnt_mm.weights.mmengine import make_loading_safe
from ptnt_mm.weights.pretrained import load_pretrained
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import read_checkpoint

REPOSITORY = 'me/net'
ADDRESS = f'hf:{REPOSITORY}'
WEIGHTS = {'layer.weight': torch.arange(6.0).reshape(2, 3)}


def _pickle(tmp_path: Path) -> bytes:
    file = tmp_path / 'weights.pth'
    torch.save(WEIGHTS, file)
    return file.read_bytes()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with one repository, and an empty cache; no retries, which would wait."""
    hub = Hub({REPOSITORY: {'model.safetensors': save(WEIGHTS), 'README.md': b'# net'}})
    with serve(hub) as address:
        connect(monkeypatch, address, tmp_path / 'cache')
        yield hub


def read(address: str = ADDRESS) -> dict:
    return read_checkpoint(address)


def refusal(address: str = ADDRESS) -> str:
    """The error of an address: one line that names it."""
    with pytest.raises(CheckpointError) as caught:
        read(address)
    text = str(caught.value)
    assert address in text and '\n' not in text
    return text


@pytest.mark.parametrize('form', ['hf:me/net', 'hf://me/net', 'hf:me/net@v1:model.safetensors'])
def test_reads_a_repository(hub: Hub, form: str):
    assert read(form)['layer.weight'].equal(WEIGHTS['layer.weight'])


def test_a_file_is_downloaded_once(hub: Hub):
    read()
    hub.requests.clear()
    read()
    downloads = [path for method, path in hub.requests if method == 'GET' and 'api' not in path]
    assert hub.requests and not downloads


@pytest.mark.parametrize('name', ['pytorch_model.bin', 'epoch_12.pth'])
def test_pickles_are_read_where_there_are_no_safetensors(hub: Hub, tmp_path: Path, name: str):
    hub.repositories[REPOSITORY] = {name: _pickle(tmp_path), 'config.json': b'{}'}
    assert read()['layer.weight'].equal(WEIGHTS['layer.weight'])


def test_safetensors_come_before_pickles(hub: Hub):
    hub.repositories[REPOSITORY]['pytorch_model.bin'] = b'not read'
    read()


def test_a_pickle_with_code_is_refused(hub: Hub):
    class Attack:
        def __reduce__(self):
            return exec, ('raise SystemExit',)

    hub.repositories[REPOSITORY] = {'pytorch_model.bin': pickle.dumps(Attack())}
    refusal()


def test_a_backbone_and_mmengine_load_it(hub: Hub):
    torch.manual_seed(0)
    source = PyramidTNT('tiny', out_indices=(0,))
    hub.repositories[REPOSITORY]['model.safetensors'] = save(source.state_dict())
    network = PyramidTNT(
        'tiny', out_indices=(0,), init_cfg=dict(type='Pretrained', checkpoint=ADDRESS)
    )
    network.init_weights()
    report = load_pretrained(network, ADDRESS)
    assert not report.missing and network.outer_pos.equal(source.outer_pos)
    other = PyramidTNT('tiny', out_indices=(0,))
    make_loading_safe()
    load_checkpoint(other, ADDRESS, logger='silent')
    assert other.outer_pos.equal(source.outer_pos)


@pytest.mark.parametrize(
    ('address', 'named'),
    [
        ('hf:me/nothing', 'me/nothing'),
        (f'{ADDRESS}@v9', 'v9'),
        (f'{ADDRESS}:other.pth', 'other.pth'),
        ('hf:net', 'hf:OWNER/NAME'),
        ('hf:me/net:', 'hf:OWNER/NAME'),
    ],
)
def test_a_wrong_address_is_named(hub: Hub, address: str, named: str):
    assert named in refusal(address).removeprefix(address)


def test_a_private_repository_needs_a_token(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    hub.private.add(REPOSITORY)
    assert 'HF_TOKEN' in refusal()
    monkeypatch.setenv('HF_TOKEN', TOKEN)
    read()


def test_a_gated_repository_has_to_be_requested(hub: Hub):
    hub.gated.add(REPOSITORY)
    assert f'{constants.ENDPOINT}/{REPOSITORY}' in refusal()


@pytest.mark.parametrize(
    ('fault', 'named'), [('forbidden', '403'), ('down', '503'), ('cut', 'connection')]
)
def test_a_failing_server_leaves_nothing(hub: Hub, tmp_path: Path, fault: str, named: str):
    hub.fault = fault
    assert named in refusal()
    assert not list((tmp_path / 'cache').rglob('snapshots/*/*'))
    hub.fault = ''
    read()


def test_a_wrong_hash_leaves_nothing(hub: Hub, tmp_path: Path):
    hub.fault = 'wrong'
    assert 'SHA-256' in refusal()
    assert not list((tmp_path / 'cache').rglob('blobs/*'))
    hub.fault = ''
    read()


def test_a_repository_without_weights(hub: Hub):
    del hub.repositories[REPOSITORY]['model.safetensors']
    assert 'README.md' in refusal()


def test_several_files_must_be_chosen_from(hub: Hub, tmp_path: Path):
    hub.repositories[REPOSITORY] = {'a.pth': _pickle(tmp_path), 'b.pth': _pickle(tmp_path)}
    assert f'{ADDRESS}:a.pth' in refusal()
    read(f'{ADDRESS}:b.pth')


def test_offline_the_cache_is_used(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    read()
    hub.requests.clear()
    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', True)
    read()
    assert not hub.requests
    assert 'HF_HUB_OFFLINE' in refusal('hf:me/other')


def test_an_unreachable_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with serve(Hub()) as address:
        pass
    connect(monkeypatch, address, tmp_path)
    assert address in refusal()


@pytest.mark.parametrize('package', ['huggingface_hub', 'safetensors'])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, package: str):
    monkeypatch.setitem(sys.modules, package, None)
    assert f'pip install {package}' in refusal()


def test_a_damaged_file_is_removed(hub: Hub, tmp_path: Path):
    hub.repositories[REPOSITORY]['model.safetensors'] = b'\0' * 100
    refusal_text = refusal()
    assert 'removed' in refusal_text
    assert not list((tmp_path / 'cache').rglob('blobs/*'))


def test_a_module_of_another_network_is_refused(hub: Hub):
    with pytest.raises(CheckpointError, match=ADDRESS):
        load_pretrained(nn.Conv2d(3, 8, 3), ADDRESS)
