import argparse
import copy
import io
import os
import pickle
import sys
import time
import zipfile
from collections import Counter, OrderedDict
from contextlib import suppress
from pathlib import Path

import attacks
import numpy as np
import pytest
import torch
from mmengine.logging import HistoryBuffer

from ptnt_mm.utils.text import first_few
from ptnt_mm.weights.reader import pickle_reader
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import (
    cache_path,
    local_file,
    read_checkpoint,
    reading_safely,
    refuse_forced_unsafe_loading,
)
from ptnt_mm.workbench.cli.main import run


@pytest.fixture
def canary(tmp_path):
    return tmp_path / 'canary'


@pytest.mark.parametrize('write', [attacks.write_zip, attacks.write_legacy])
@pytest.mark.parametrize('attack', attacks.REFUSED)
def test_attack_is_refused(tmp_path, canary, attack, write):
    path = write(tmp_path / 'bad.pth', {'state_dict': attacks.REFUSED[attack](canary)})
    before, start = attacks.snapshot(), time.process_time()
    with pytest.raises(CheckpointError, match=r'bad\.pth: refused') as error:
        read_checkpoint(path)
    assert time.process_time() - start < 5
    assert not canary.exists()
    assert attacks.snapshot() == before
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    'name',
    [
        'os.system',
        'pathlib.Path',
        'numpy.dtypes.ObjectDType',
        'torch.ComplexFloatStorage',
        'torch.QInt8Storage',
        'torch.Tensor',
        'torch._utils._rebuild_device_tensor_from_numpy',
        'torch._utils._rebuild_meta_tensor_no_storage',
        'torch._utils._rebuild_qtensor',
        'torch._utils._rebuild_sparse_tensor',
        'torch.serialization._get_layout',
    ],
)
def test_a_name_that_is_not_on_the_list_is_refused(tmp_path, name):
    path = attacks.write_zip(tmp_path / 'bad.pth', attacks.glob(*name.rsplit('.', 1)).reduce())
    with pytest.raises(CheckpointError, match=rf"bad\.pth: refused, it asks for '{name}'"):
        read_checkpoint(path)


@pytest.mark.parametrize('attack', attacks.ARCHIVES, ids=lambda attack: attack.__name__)
def test_archive_is_refused(tmp_path, attack):
    with pytest.raises(CheckpointError, match=r'bad\.pth: (refused|is not a checkpoint)'):
        read_checkpoint(attack(tmp_path / 'bad.pth'))


def test_the_command_runs_where_pickle_is_unguarded(canary):
    """The tests above would prove nothing if the attacks were harmless."""
    pickle.loads(attacks.pickled(attacks.os_system(canary)))
    assert canary.exists()


def test_the_attacked_names_are_read_where_they_are_honest(tmp_path):
    """Nor would they if the attacks' tensors could never be read."""
    path = attacks.write_zip(tmp_path / 'a.pth', {'x': attacks.tensor((2, 128), (128, 1))})
    assert read_checkpoint(path)['x'].eq(torch.zeros(2, 128)).all()


def test_a_file_reaches_nothing_that_can_be_called(tmp_path, canary, monkeypatch):
    """All names that the reader accepts, and all objects that are ever on its stack."""
    known = {*pickle_reader.NAMES, *pickle_reader.STORAGES, *pickle_reader.DTYPES}
    named = [pickle_reader._name(*path.rsplit('.', 1)) for path in known]
    assert len(named) == 47
    kinds = {type(value) for value in named}
    assert kinds == {pickle_reader.Name, torch.dtype}
    step = pickle_reader._Machine.step

    def looked_at(machine, *arguments):
        step(machine, *arguments)
        kinds.update(type(value) for value in machine.stack[-1:])
        assert not any(callable(value) for value in machine.stack[-1:])

    monkeypatch.setattr(pickle_reader._Machine, 'step', looked_at)
    honest = tmp_path / 'honest.pth'
    torch.save(everything(), honest)
    read_checkpoint(honest)
    for attack in attacks.REFUSED.keys() - set(attacks.SLOW):
        content = {'state_dict': attacks.REFUSED[attack](canary)}
        with pytest.raises(CheckpointError):
            read_checkpoint(attacks.write_zip(tmp_path / 'bad.pth', content))
    ours = {pickle_reader.Name, pickle_reader.Storage, pickle_reader.Unfinished, np.dtype(bool)}
    plain = {*pickle_reader._CONTAINERS, *pickle_reader._LEAVES}
    numbers = {kind for kind in kinds if issubclass(kind, (np.generic, np.dtype))}
    assert kinds <= ours | plain | numbers


def test_only_our_functions_run_while_a_file_is_read(tmp_path, canary):
    """None of torch's rebuilders, of pickle's or of copyreg's functions."""
    ran = set()

    def note(frame, event, _):
        if event == 'call':
            ran.add((frame.f_globals.get('__name__'), frame.f_code.co_qualname))

    honest = tmp_path / 'honest.pth'
    torch.save(everything(), honest)
    files = [honest]
    for attack in attacks.REFUSED.keys() - set(attacks.SLOW):
        content = {'state_dict': attacks.REFUSED[attack](canary)}
        files.append(attacks.write_zip(tmp_path / f'{attack}.pth', content))
    sys.setprofile(note)
    try:
        for file in files:
            with suppress(CheckpointError):
                read_checkpoint(file)
    finally:
        sys.setprofile(None)
    libraries = ('torch', 'mmengine', 'numpy', 'pickle', 'collections', 'copyreg', 'argparse')
    outside = {name for module, name in ran if module.split('.')[0] in libraries}
    assert outside <= MADE_OF, outside - MADE_OF


def test_a_forged_table_of_methods_is_left_aside(tmp_path):
    methods = {'mean': attacks.GETATTR.reduce(attacks.HISTORY, 'max'), 'extra': 'anything'}
    path = attacks.write_zip(tmp_path / 'log.pth', {'buffer': attacks.history(methods)})
    before = attacks.snapshot()
    buffer = read_checkpoint(path)['buffer']
    assert attacks.snapshot() == before
    assert type(buffer) is HistoryBuffer
    assert buffer.statistics('mean') == 1.5
    with pytest.raises(KeyError):
        buffer.statistics('extra')


def test_honest_log_round_trip(tmp_path):
    path = tmp_path / 'log.pth'
    written = attacks.honest_log()
    torch.save(written, path)
    once = read_checkpoint(path)
    torch.save(copy.deepcopy(once), path)
    for loaded in (once, read_checkpoint(path)):
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
    buffer = read_checkpoint(path)['log_scalars']['train/loss']
    buffer.update(7.0)
    assert buffer.current() == 7.0
    assert buffer.statistics('max') == 7.0


TABLE = torch.arange(12.0).reshape(3, 4)


def everything() -> dict:
    """All kinds of content that valid checkpoints have."""
    weights = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).state_dict()
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(2))], lr=0.1)
    optimizer.param_groups[0]['params'][0].sum().backward()
    optimizer.step()
    return dict(
        state_dict=weights,
        optimizer=optimizer.state_dict(),
        scheduler=dict(milestones=Counter([8, 11, 11]), base_values=[0.1], verbose=False),
        message_hub=attacks.honest_log(),
        meta=dict(epoch=1, time='noon', dataset_meta=dict(classes=('a', 'b'), palette=[(1, 2, 3)])),
        args=argparse.Namespace(lr=1e-3, betas=(0.9, 0.999), device=torch.device('cuda', 1)),
        pairs=OrderedDict(a=1),
        view=TABLE[1:, 1:],
        turned=TABLE.T,
        empty=torch.zeros(0, 3),
        number=torch.tensor(3),
        parameter=torch.nn.Parameter(torch.ones(2)),
        dtypes={str(dtype): torch.ones(2).to(dtype) for dtype in pickle_reader.DTYPES.values()},
        dtype=torch.bfloat16,
        size=torch.Size((1, 2)),
        content=b'\0\xff' * 300,
        nothing=b'',
        some={1, 2},
        large=2**60,
    )


# Objects made from checked parts: a tensor's storage, a HistoryBuffer, the place of tensors.
MADE_OF = {
    'Counter.__init__',
    'Counter.update',
    'Namespace.__init__',
    'decode_long',
    'HistoryBuffer.__init__',
    'HistoryBuffer._set_default_statistics',
    'Parameter.__new__',
    'Mapping.get',  # of os.environ
    'Tensor.__len__',
    '_ParameterMeta.__instancecheck__',
}


def assert_same(found, wanted):
    assert type(found) is type(wanted)
    if isinstance(wanted, torch.Tensor):
        assert (found.dtype, found.stride()) == (wanted.dtype, wanted.stride())
        assert found.requires_grad == wanted.requires_grad
        torch.testing.assert_close(found.double(), wanted.double(), rtol=0, atol=0)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        assert getattr(found, '_metadata', None) == getattr(wanted, '_metadata', None)
        for key in wanted:
            assert_same(found[key], wanted[key])
    elif isinstance(wanted, HistoryBuffer):
        assert found.max_length == wanted.max_length
        assert_same(found.data, wanted.data)
    elif isinstance(wanted, (list, tuple)):
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_equal(found, wanted)
        assert getattr(found, 'dtype', None) == getattr(wanted, 'dtype', None)


def test_a_long_pickle_is_read(tmp_path):
    """A log of many iterations is larger than the limit of a table of contents."""
    content = bytes(17 << 20)
    torch.save({'log': content, 'weight': TABLE}, tmp_path / 'a.pth')
    found = read_checkpoint(tmp_path / 'a.pth')
    assert found['log'] == content and found['weight'].equal(TABLE)


@pytest.mark.parametrize('zipped', [True, False])
def test_everything_honest_is_read(tmp_path, zipped):
    written = everything()
    torch.save(written, tmp_path / 'a.pth', _use_new_zipfile_serialization=zipped)
    found = read_checkpoint(tmp_path / 'a.pth')
    assert_same(found, written)
    assert found['view'].untyped_storage()._cdata == found['turned'].untyped_storage()._cdata
    found['view'].zero_()
    assert found['turned'][1:, 1:].eq(0).all()


def test_old_names_of_things(tmp_path):
    """As torch 0.3 and Python 2 wrote them."""
    rebuild = attacks.glob('torch._utils', '_rebuild_tensor')
    weight = rebuild.reduce(attacks.storage(), 0, (256,), (1,))
    path = attacks.write_legacy(tmp_path / 'a.pth', attacks.ORDERED.reduce([['w', weight]]))
    assert read_checkpoint(path)['w'].shape == (256,)


def test_a_parameter_with_attributes(tmp_path):
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.group = 'head'
    torch.save({'p': parameter}, tmp_path / 'a.pth')
    assert type(read_checkpoint(tmp_path / 'a.pth')['p']) is torch.nn.Parameter


@pytest.mark.parametrize('zipped', [True, False])
def test_another_byte_order(tmp_path, zipped):
    torch.save({'w': TABLE.clone()}, tmp_path / 'a.pth', _use_new_zipfile_serialization=zipped)
    content = (tmp_path / 'a.pth').read_bytes()
    numbers = TABLE.numpy().tobytes()
    content = content.replace(numbers, TABLE.numpy().byteswap().tobytes())
    if zipped:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [entry.filename for entry in archive.infolist()]
            parts = [(name, torch_entry(content, archive, name)) for name in names]
        parts = [(n, b'big' if n.endswith('byteorder') else c) for n, c in parts]
        attacks.write_entries(tmp_path / 'a.pth', parts)
    else:
        marked = b'little_endianq\x02\x88'
        assert marked in content
        (tmp_path / 'a.pth').write_bytes(content.replace(marked, marked[:-1] + b'\x89'))
    assert_same(read_checkpoint(tmp_path / 'a.pth')['w'], TABLE)


def torch_entry(content, archive, name):
    """An entry's bytes, whatever its checksum."""
    entry = archive.getinfo(name)
    start = entry.header_offset + 26
    lengths = int.from_bytes(content[start : start + 2], 'little')
    lengths += int.from_bytes(content[start + 2 : start + 4], 'little')
    return content[start + 4 + lengths :][: entry.file_size]


def kept_on(storage, place):
    return storage if place == 'cpu' else None


@pytest.mark.parametrize('zipped', [True, False])
@pytest.mark.parametrize(
    ('place', 'device'),
    [
        (None, 'cpu'),
        ('cpu', 'cpu'),
        (torch.device('cpu'), 'cpu'),
        ({'cpu': 'meta'}, 'meta'),
        ({'cuda:0': 'cpu'}, 'cpu'),
        (kept_on, 'cpu'),
        ('meta', 'meta'),
    ],
)
def test_map_location_is_followed(tmp_path, place, device, zipped):
    torch.save({'w': TABLE}, tmp_path / 'a.pth', _use_new_zipfile_serialization=zipped)
    assert read_checkpoint(tmp_path / 'a.pth', place)['w'].device.type == device


def test_a_flipped_bit_is_found(tmp_path):
    torch.save({'w': TABLE}, tmp_path / 'a.pth')
    content = (tmp_path / 'a.pth').read_bytes()
    at = content.index(TABLE.numpy().tobytes()) + 5
    (tmp_path / 'a.pth').write_bytes(content[:at] + b'\xee' + content[at + 1 :])
    with pytest.raises(CheckpointError, match=r'a\.pth: is not a checkpoint .*damaged'):
        read_checkpoint(tmp_path / 'a.pth')


def test_terminal_escapes_are_not_printed(tmp_path):
    path = attacks.write_zip(tmp_path / 'bad.pth', {attacks.ESCAPES: 1})
    escaped = r'\x1b[2J\x00\r\x07\u202e'
    assert first_few(read_checkpoint(path)) == escaped
    assert first_few(['x' * 1000]) == 'x' * 200 + '...'
    path = attacks.write_zip(tmp_path / 'bad.pth', attacks.glob('os', attacks.ESCAPES[:2]))
    with pytest.raises(CheckpointError, match=r"asks for 'os\.\\+x1b\["):
        read_checkpoint(path)


@pytest.mark.parametrize('value', ['1', 'True', '?'])
def test_forced_unsafe_loading_is_refused(tmp_path, canary, monkeypatch, value):
    path = attacks.write_zip(tmp_path / 'bad.pth', attacks.os_system(canary))
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', value)
    with pytest.raises(CheckpointError, match='unset TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'):
        read_checkpoint(path)
    assert not canary.exists()


@pytest.mark.parametrize('before', [None, '0'])
def test_torch_load_is_safe_inside_reading_safely(tmp_path, canary, monkeypatch, before):
    monkeypatch.delenv('TORCH_FORCE_WEIGHTS_ONLY_LOAD', raising=False)
    if before is not None:
        monkeypatch.setenv('TORCH_FORCE_WEIGHTS_ONLY_LOAD', before)
    path = attacks.write_zip(tmp_path / 'bad.pth', attacks.os_system(canary))
    original = torch.load
    with pytest.raises(CheckpointError, match='refused'), reading_safely():
        torch.load(path, weights_only=False)
    with pytest.raises(CheckpointError, match='refused'), reading_safely():
        torch.load(io.BytesIO(path.read_bytes()), weights_only=False, pickle_module=pickle)
    # For code that kept a reference to torch.load, torch enforces safety.
    with pytest.raises(pickle.UnpicklingError), reading_safely():
        original(path, weights_only=False)
    with pytest.raises(RuntimeError, match='pickle_module'), reading_safely():
        original(path, weights_only=False, pickle_module=pickle)
    assert torch.load is original
    assert not canary.exists()
    assert os.environ.get('TORCH_FORCE_WEIGHTS_ONLY_LOAD') == before


@pytest.mark.parametrize('value', ['', '0', 'False', ' off '])
def test_disabled_unsafe_loading_is_allowed(monkeypatch, value):
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', value)
    refuse_forced_unsafe_loading()


def test_an_optimizer_of_many_parameters_is_read(tmp_path):
    state = {number: {} for number in range(9_000)}
    torch.save({'optimizer': {'state': state}}, tmp_path / 'a.pth')
    assert read_checkpoint(tmp_path / 'a.pth')['optimizer']['state'] == state


def test_colliding_names_of_storages(tmp_path, canary):
    """The last pickle of a legacy file is a list of names, not of numbers."""
    path = attacks.write_legacy(tmp_path / 'bad.pth', {})
    content = path.read_bytes().removesuffix(pickle.dumps([], protocol=2))
    path.write_bytes(content + attacks.pickled([*attacks.colliding_numbers()]))
    with pytest.raises(CheckpointError, match='tensors without their bytes'):
        read_checkpoint(path)


def written(path, content):
    path.write_bytes(content)
    return path


def truncated(path):
    torch.save({'weight': torch.zeros(1000)}, path)
    return written(path, path.read_bytes()[:2000])


def truncated_legacy(path):
    torch.save({'weight': torch.zeros(9)}, path, _use_new_zipfile_serialization=False)
    return written(path, path.read_bytes()[:-40])


def on_several_disks(path):
    """An archive whose end claims that it continues on another disk."""
    torch.save({'weight': torch.zeros(9)}, path)
    return written(path, path.read_bytes().replace(b'PK\6\7\0', b'PK\6\7\1'))


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


def pipe(path):
    os.mkfifo(path)
    return path


def device(path):
    path.symlink_to('/dev/zero')
    return path


def dangling(path):
    path.symlink_to('nowhere')
    return path


def unreadable(path):
    """A file of /proc that raises an OSError when it is read."""
    path.symlink_to('/proc/self/mem')
    return path


BAD_FILES = (
    (pipe, 'is a pipe, a socket or a device'),
    (device, 'is a .* device, not a file'),
    (dangling, 'no such file'),
    (unreadable, 'is empty'),
    (lambda path: path, 'no such file'),
    (lambda path: path.mkdir() or path, 'is a folder'),
    (lambda path: written(path, b''), 'is empty'),
    (lambda path: written(path, b'hello, I am text\n' * 99), 'is a text file'),
    (lambda path: written(path, b'x' + 'é'.encode() * 600), 'is a text file'),
    (lambda path: written(path, b'\n<!DOCTYPE html><html>'), 'is a web page'),
    (lambda path: written(path, b'version https://git-lfs.github.com/spec/v1\n'), 'git lfs pull'),
    (lambda path: written(path, bytes(range(256)) * 9), 'damaged'),
    (truncated, 'is truncated'),
    (truncated_legacy, 'damaged'),
    (on_several_disks, 'is truncated'),
    (without_pickle, 'damaged'),
    (a_list, 'contains a list, expected a dict'),
    (torchscript, 'TorchScript'),
    (safetensors, 'rename it to weights.safetensors'),
)


@pytest.mark.filterwarnings('ignore::DeprecationWarning', 'ignore:.*TorchScript')
@pytest.mark.parametrize(('make', 'message'), BAD_FILES, ids=[m for _, m in BAD_FILES])
def test_bad_file(tmp_path, make, message):
    path = make(tmp_path / 'weights.pth')
    with pytest.raises(CheckpointError, match=rf'weights\.pth: .*{message}'):
        read_checkpoint(path)


@pytest.mark.parametrize('strange', ['text', 3, [1], None])
@pytest.mark.parametrize(
    ('entry', 'wrap'),
    [
        ('meta', lambda strange: {'meta': strange}),
        ('message_hub', lambda strange: {'message_hub': strange}),
        ('message_hub.runtime_info', lambda strange: {'message_hub': {'runtime_info': strange}}),
    ],
)
def test_metadata_of_another_kind(tmp_path, strange, entry, wrap):
    torch.save({'state_dict': {'w': torch.ones(1)}, **wrap(strange)}, tmp_path / 'a.pth')
    with pytest.raises(CheckpointError, match=rf'a\.pth: .*{entry} is a {type(strange).__name__}'):
        read_checkpoint(tmp_path / 'a.pth')


def test_a_checkpoint_may_be_in_the_home_folder_or_at_an_address(
    tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.setenv('HOME', str(tmp_path))
    torch.save({'w': torch.zeros(1)}, tmp_path / 'w.pth')
    assert run('checkpoint', ['inspect', '~/w.pth']) == 0
    assert run('checkpoint', ['inspect', '~/x.pth']) == 1
    assert 'no such file' in capsys.readouterr().err
    assert local_file('~/w.pth') == tmp_path / 'w.pth'
    address = 'https://example.org/w.pth'
    assert run('test', ['demo_retinanet_ptnt_ti', address, '--data-root', str(tmp_path)]) == 1
    assert 'no such file' not in capsys.readouterr().err, 'it is looked for later'
    assert local_file(address) == cache_path(address)
