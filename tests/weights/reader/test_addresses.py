"""Checkpoints from web addresses, which are downloaded once."""

import hashlib
import socket

import attacks
import pytest
import torch

from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import cache_path, read_checkpoint


def saved(path, checkpoint):
    torch.save(checkpoint, path)
    return path


def test_address_is_fetched_once(server):
    address, folder, _ = server
    path = saved(folder / 'w.pth', {'w': torch.ones(2)})
    assert read_checkpoint(f'{address}/w.pth?download=1')['w'].eq(1).all()
    path.unlink()
    assert read_checkpoint(f'{address}/w.pth?download=1')['w'].eq(1).all()


def test_a_download_leaves_other_connections_as_they_are(server, monkeypatch):
    address, folder, _ = server
    saved(folder / 'w.pth', {'w': torch.ones(2)})
    monkeypatch.setattr(socket, 'setdefaulttimeout', None)
    assert read_checkpoint(f'{address}/w.pth')['w'].eq(1).all()


def test_a_server_that_does_not_answer_is_given_up(server, monkeypatch):
    settimeout = socket.socket.settimeout

    def sooner(self: socket.socket, seconds: float | None) -> None:
        settimeout(self, seconds and seconds / 100)

    monkeypatch.setattr(socket.socket, 'settimeout', sooner)
    with socket.create_server(('127.0.0.1', 0)) as silent:
        address = f'http://127.0.0.1:{silent.getsockname()[1]}/w.pth'
        with pytest.raises(CheckpointError, match='cannot be downloaded .*timed out'):
            read_checkpoint(address)
    assert not list((server[2] / 'checkpoints').iterdir())


def test_one_name_at_two_addresses(server):
    address, folder, _ = server
    for number, name in enumerate(('one', 'two')):
        (folder / name).mkdir()
        saved(folder / name / 'epoch_12.pth', {'w': torch.full((2,), float(number))})
    for number, name in enumerate(('one', 'two')):
        assert read_checkpoint(f'{address}/{name}/epoch_12.pth')['w'].eq(number).all()


def in_torchs_hub(hub, weights):
    """Put a file where torch.hub caches downloads; return its name with the digest."""
    folder = hub / 'checkpoints'
    folder.mkdir(parents=True)
    digest = hashlib.sha256(saved(folder / 'w.pth', weights).read_bytes()).hexdigest()
    return (folder / 'w.pth').rename(folder / f'w-{digest[:8]}.pth').name


def test_file_that_torch_fetched_is_used(server):
    name = in_torchs_hub(server[2], {'w': torch.ones(2)})
    assert read_checkpoint(f'{server[0]}/{name}')['w'].eq(1).all()


def test_file_of_another_digest_is_not_used(server):
    address, folder, hub = server
    name = in_torchs_hub(hub, {'w': torch.ones(2)})
    saved(hub / 'checkpoints' / name, {'w': torch.zeros(3)})
    saved(folder / name, {'w': torch.ones(2)})
    assert read_checkpoint(f'{address}/{name}')['w'].eq(1).all()


def test_attack_from_an_address(server, tmp_path):
    address, folder, hub = server
    canary = tmp_path / 'canary'
    attacks.write_zip(folder / 'bad.pth', attacks.os_system(canary))
    with pytest.raises(CheckpointError, match=r'refused.*it came from http.*was removed'):
        read_checkpoint(f'{address}/bad.pth')
    assert not canary.exists() and not list((hub / 'checkpoints').iterdir())


@pytest.mark.parametrize('path', ['/gone.pth', ':1/w.pth'])
def test_unreachable_address_is_explained(server, path):
    address, _, hub = server
    if path.startswith(':'):
        address = 'http://127.0.0.1'  # where nobody listens
    with pytest.raises(CheckpointError, match=rf'cannot be downloaded.*put it at {hub}'):
        read_checkpoint(address + path)
    saved(cache_path(address + path), {'w': torch.ones(1)})
    assert 'w' in read_checkpoint(address + path)


def test_address_without_a_file(server):
    with pytest.raises(CheckpointError, match='contains no file name'):
        read_checkpoint(f'{server[0]}/')


def test_unknown_scheme():
    with pytest.raises(CheckpointError, match='s3:// cannot be read; download the file'):
        read_checkpoint('s3://bucket/w.pth')
