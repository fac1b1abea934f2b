"""Safetensors files with untrustworthy headers."""

import json
import sys
from pathlib import Path

import pytest
import torch

from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import read_checkpoint


def write(path: Path, dtype: str, shape: list[int], nbytes: int, copies: int = 1) -> Path:
    """Write a file of tensors with the given dtype and shape in its header."""
    entries = {
        f'w{i}': dict(dtype=dtype, shape=shape, data_offsets=[i * nbytes, (i + 1) * nbytes])
        for i in range(copies)
    }
    header = json.dumps(entries).encode()
    path.write_bytes(len(header).to_bytes(8, 'little') + header + bytes(nbytes * copies))
    return path


def test_an_honest_file(tmp_path: Path):
    path = write(tmp_path / 'a.safetensors', 'F32', [2, 0, 3], 0)
    assert read_checkpoint(path)['w0'].shape == (2, 0, 3)
    path = write(tmp_path / 'a.safetensors', 'BF16', [2], 4, copies=2)
    weights = read_checkpoint(path)
    assert weights.keys() == {'w0', 'w1'}
    assert weights['w1'].equal(torch.zeros(2, dtype=torch.bfloat16))


@pytest.mark.parametrize(
    ('dtype', 'shape', 'nbytes', 'message'),
    [
        # Older versions of safetensors do not know these.
        ('F4', [2], 1, r'float4|damaged'),
        ('C64', [2], 16, r'complex64|damaged'),
        ('F6_E2M3', [4], 3, 'damaged'),
        ('NEW', [4], 3, 'damaged'),
        ('F32', [2**40, 2**40], 16, 'damaged'),
        ('F32', [2**62, 0], 0, 'refused'),
        ('F32', [2**31, 2**31, 0], 0, r'refused|damaged'),
        ('F32', [1] * 65, 4, 'refused'),
        ('F32', [1] * 100_000, 4, 'refused'),
    ],
)
def test_invalid_tensor_is_refused(tmp_path: Path, dtype, shape, nbytes, message):
    path = write(tmp_path / 'bad.safetensors', dtype, shape, nbytes)
    with pytest.raises(CheckpointError, match=rf'bad\.safetensors: .*({message})'):
        read_checkpoint(path)


def test_too_many_tensors(tmp_path: Path):
    path = write(tmp_path / 'bad.safetensors', 'F32', [0], 0, copies=60_000)
    with pytest.raises(CheckpointError, match='refused: more than 50000 tensors'):
        read_checkpoint(path)


def test_a_header_that_is_too_long(tmp_path: Path):
    path = tmp_path / 'bad.safetensors'
    path.write_bytes((2**40).to_bytes(8, 'little') + b'{}')
    with pytest.raises(CheckpointError, match=str(2**40)):
        read_checkpoint(path)


@pytest.mark.parametrize('place', [None, 'cpu', torch.device('cpu'), 'meta'])
def test_map_location_is_followed(tmp_path, place):
    path = write(tmp_path / 'a.safetensors', 'F32', [2], 8)
    (weight,) = read_checkpoint(path, place).values()
    assert weight.shape == (2,) and weight.device.type == str(place or 'cpu')


def test_an_unknown_place_is_refused(tmp_path):
    path = write(tmp_path / 'a.safetensors', 'F32', [2], 8)
    with pytest.raises(CheckpointError, match='foo'):
        read_checkpoint(path, 'foo')


def test_safetensors_not_installed(tmp_path, monkeypatch):
    path = tmp_path / 'tiny.safetensors'
    path.write_bytes(b'\x00{}')
    monkeypatch.setitem(sys.modules, 'safetensors', None)
    with pytest.raises(CheckpointError, match='pip install safetensors'):
        read_checkpoint(path)


def test_damaged_safetensors(tmp_path):
    path = tmp_path / 'tiny.safetensors'
    path.write_bytes(b'\xff' * 64)
    with pytest.raises(CheckpointError, match='is not a safetensors file'):
        read_checkpoint(path)
