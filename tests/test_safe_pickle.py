import argparse
import builtins
import copy
import functools
import os
import pickle
import zipfile

import attacks
import numpy as np
import pytest
import torch
from mmengine.logging import HistoryBuffer
from torch.serialization import add_safe_globals, clear_safe_globals, get_safe_globals

from ptnt_mm.safe_pickle import (
    ALLOWED,
    CheckpointError,
    allow_mmengine_checkpoints,
    reading_safely,
    refuse_forced_unsafe_loading,
    safe_load,
)


@pytest.fixture
def canary(tmp_path):
    return tmp_path / 'canary'


@pytest.fixture
def torch_list():
    """Give torch's list of admitted names back as it was."""
    before = get_safe_globals()
    yield
    clear_safe_globals()
    add_safe_globals(before)


def snapshot():
    """What a crafted file may want to change in this process."""
    HistoryBuffer()  # fills the class's table of its own methods
    return dict(vars(builtins)), dict(HistoryBuffer._statistics_methods), dict(vars(HistoryBuffer))


@pytest.mark.parametrize('write', [attacks.write_zip, attacks.write_legacy])
@pytest.mark.parametrize('attack', attacks.REFUSED, ids=lambda attack: attack.__name__)
def test_attack_is_refused(tmp_path, canary, attack, write):
    path = write(tmp_path / 'bad.pth', {'state_dict': attack(canary)})
    before = snapshot()
    with pytest.raises(CheckpointError, match=r'bad\.pth: (refused|.*of type numpy\.void)'):
        safe_load(path)
    assert not canary.exists()
    assert snapshot() == before


@pytest.mark.parametrize('attack', attacks.REFUSED, ids=lambda attack: attack.__name__)
def test_attack_is_refused_by_torch_with_our_list(tmp_path, canary, attack, torch_list):
    allow_mmengine_checkpoints()
    path = attacks.write_zip(tmp_path / 'bad.pth', {'state_dict': attack(canary)})
    before = snapshot()
    with pytest.raises((CheckpointError, pickle.UnpicklingError, TypeError, ValueError)):
        torch.load(path, weights_only=True)
    assert not canary.exists()
    assert snapshot() == before


def test_the_command_runs_where_pickle_is_unguarded(canary):
    """The tests above would prove nothing if the attacks were harmless."""
    pickle.loads(attacks.pickled(attacks.os_system(canary)))
    assert canary.exists()


def test_getattr_climbs_where_it_is_admitted(tmp_path, canary, torch_list):
    clear_safe_globals()
    add_safe_globals([getattr, HistoryBuffer])
    path = attacks.write_zip(tmp_path / 'bad.pth', attacks.climbing_getattr(canary))
    assert '__builtins__' in torch.load(path, weights_only=True)


def test_refusal_names_what_was_asked_for(tmp_path, canary):
    path = attacks.write_zip(tmp_path / 'bad.pth', attacks.posix_system(canary))
    with pytest.raises(CheckpointError, match=r"bad\.pth: refused, it asks for 'posix\.system'"):
        safe_load(path)


def test_a_forged_table_of_methods_is_left_aside(tmp_path):
    methods = {'mean': attacks.GETATTR.reduce(attacks.HISTORY, 'max'), 'extra': 'anything'}
    path = attacks.write_zip(tmp_path / 'log.pth', {'buffer': attacks.history(methods)})
    before = snapshot()
    buffer = safe_load(path)['buffer']
    assert snapshot() == before
    assert type(buffer) is HistoryBuffer
    assert buffer.statistics('mean') == 1.5
    with pytest.raises(KeyError):
        buffer.statistics('extra')


def test_other_plugins_may_not_widen_our_names(tmp_path, canary, torch_list):
    # torch keeps a set, and of equal names any one wins: so many leave ours no chance of its own.
    others = [functools.partial(getattr) for _ in range(100)]
    add_safe_globals([(other, 'builtins.getattr') for other in others])
    add_safe_globals([HistoryBuffer, np.ndarray, np.dtype])
    before = set(get_safe_globals())
    path = attacks.write_zip(tmp_path / 'bad.pth', {'x': attacks.climbing_getattr(canary)})
    with pytest.raises(CheckpointError, match=r'bad\.pth: refused'):
        safe_load(path)
    assert set(get_safe_globals()) == before


class Trusted(dict):
    """Something that a user admits himself."""


def test_what_the_user_admits_still_loads(tmp_path, torch_list):
    path = tmp_path / 'own.pth'
    torch.save({'config': argparse.Namespace(a=1), 'mine': Trusted}, path)
    with pytest.raises(CheckpointError, match='Trusted'):
        safe_load(path)
    add_safe_globals([Trusted])
    assert safe_load(path)['mine'] is Trusted


def test_honest_log_round_trip(tmp_path):
    path = tmp_path / 'log.pth'
    written = attacks.honest_log()
    torch.save(written, path)
    once = safe_load(path)
    torch.save(copy.deepcopy(once), path)
    for loaded in (once, safe_load(path)):
        for name, buffer in written['log_scalars'].items():
            assert type(loaded['log_scalars'][name]) is HistoryBuffer
            for ours, theirs in zip(loaded['log_scalars'][name].data, buffer.data, strict=True):
                assert type(ours) is np.ndarray
                np.testing.assert_array_equal(ours, theirs)
            assert loaded['log_scalars'][name].max_length == buffer.max_length
        for name, value in written['runtime_info'].items():
            np.testing.assert_array_equal(loaded['runtime_info'][name], value)
        assert isinstance(loaded['runtime_info']['best_score'], np.float64)


def test_a_loaded_buffer_goes_on_counting(tmp_path):
    path = tmp_path / 'log.pth'
    torch.save(attacks.honest_log(), path)
    buffer = safe_load(path)['log_scalars']['train/loss']
    buffer.update(7.0)
    assert buffer.current() == 7.0
    assert buffer.statistics('max') == 7.0


def test_torch_reads_mmengine_files_once_allowed(tmp_path, torch_list):
    clear_safe_globals()
    path = tmp_path / 'log.pth'
    torch.save(attacks.honest_log(), path)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(path, weights_only=True)
    allow_mmengine_checkpoints()
    allow_mmengine_checkpoints()
    assert len(get_safe_globals()) == len(set(ALLOWED))
    buffer = torch.load(path, weights_only=True)['log_scalars']['train/loss']
    assert type(buffer) is HistoryBuffer


def test_namespace_is_admitted_while_we_read_only(tmp_path, torch_list):
    clear_safe_globals()
    allow_mmengine_checkpoints()
    path = attacks.write_authors_checkpoint(tmp_path / 'a.pth.tar', {}, {})
    assert safe_load(path)['args'].model == 'ptnt_s'
    with pytest.raises(pickle.UnpicklingError, match='Namespace'):
        torch.load(path, weights_only=True)


@pytest.mark.parametrize('value', ['1', 'true', 'True', 'yes', 'on'])
def test_forced_unsafe_loading_is_refused(tmp_path, canary, monkeypatch, value):
    path = attacks.write_zip(tmp_path / 'bad.pth', attacks.os_system(canary))
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', value)
    with pytest.raises(CheckpointError, match='unset TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'):
        safe_load(path)
    assert not canary.exists()


@pytest.mark.parametrize('before', [None, '0'])
def test_others_read_safely_inside(tmp_path, canary, monkeypatch, before):
    monkeypatch.delenv('TORCH_FORCE_WEIGHTS_ONLY_LOAD', raising=False)
    if before is not None:
        monkeypatch.setenv('TORCH_FORCE_WEIGHTS_ONLY_LOAD', before)
    path = attacks.write_zip(tmp_path / 'bad.pth', attacks.os_system(canary))
    with pytest.raises(pickle.UnpicklingError), reading_safely():
        torch.load(path, weights_only=False)
    with pytest.raises(RuntimeError, match='pickle_module'), reading_safely():
        torch.load(path, weights_only=False, pickle_module=pickle)
    assert not canary.exists()
    assert os.environ.get('TORCH_FORCE_WEIGHTS_ONLY_LOAD') == before


@pytest.mark.parametrize('value', ['', '0', 'false'])
def test_switched_off_is_fine(monkeypatch, value):
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', value)
    refuse_forced_unsafe_loading()


def written(path, content):
    path.write_bytes(content)
    return path


def truncated(path):
    torch.save({'weight': torch.zeros(1000)}, path)
    return written(path, path.read_bytes()[:2000])


def truncated_legacy(path):
    torch.save({'weight': torch.zeros(9)}, path, _use_new_zipfile_serialization=False)
    return written(path, path.read_bytes()[:-40])


def without_pickle(path):
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('archive/readme', 'x')
    return path


def a_list(path):
    torch.save([torch.zeros(1)], path)
    return path


def torchscript(path):
    torch.jit.script(torch.nn.Linear(1, 1)).save(path)
    return path


def safetensors(path):
    return written(path, (2).to_bytes(8, 'little') + b'{}')


BAD_FILES = (
    (lambda path: path, 'no such file'),
    (lambda path: path.mkdir() or path, 'is a folder'),
    (lambda path: written(path, b''), 'is empty'),
    (lambda path: written(path, b'hello, I am text\n' * 99), 'is a text file'),
    (lambda path: written(path, b'x' + 'é'.encode() * 600), 'is a text file'),
    (lambda path: written(path, b'\n<!DOCTYPE html><html>'), 'is a web page'),
    (lambda path: written(path, b'version https://git-lfs.github.com/spec/v1\n'), 'git lfs pull'),
    (lambda path: written(path, bytes(range(256)) * 9), 'damaged'),
    (truncated, 'is cut off'),
    (truncated_legacy, 'damaged'),
    (without_pickle, 'damaged'),
    (a_list, 'holds a list, expected a dict'),
    (torchscript, 'TorchScript'),
    (safetensors, 'rename it to weights.safetensors'),
)


@pytest.mark.filterwarnings('ignore::DeprecationWarning', 'ignore:.*TorchScript')
@pytest.mark.parametrize(('make', 'message'), BAD_FILES, ids=[m for _, m in BAD_FILES])
def test_bad_file(tmp_path, make, message):
    path = make(tmp_path / 'weights.pth')
    with pytest.raises(CheckpointError, match=rf'weights\.pth: .*{message}'):
        safe_load(path)
