"""The table of causes: each row recognises its exceptions and names what is to blame."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from ranks import second_of_two
from torch import nn
from torch.utils.data import DataLoader

from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.causes import CAUSES, Kind, explain
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.read import read_config


class Base(nn.Module):
    def __init__(self, hidden_dim: int = 1):
        super().__init__()


class Derived(Base):
    def __init__(self, out_dim: int = 1, **kwargs):
        super().__init__(**kwargs)


class Buggy(nn.Module):
    def __init__(self):
        super().__init__()
        self._initialise(scale=1)

    def _initialise(self) -> None:
        pass


class Refusing(nn.Module):
    def __init__(self, error: Exception):
        raise error


class Broken:
    """A data set whose second item cannot be read."""

    def __init__(self, error: Exception):
        self.error = error

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int):
        raise self.error


def raised(call: Callable, *args, **kwargs) -> Exception:
    with pytest.raises(Exception) as caught:
        call(*args, **kwargs)
    return caught.value


def in_worker(error: Exception) -> Exception:
    """As torch raises it again: only its type, and the worker's traceback as the message."""
    samples = iter(DataLoader(Broken(error), num_workers=1))
    found = raised(next, samples)
    # A worker that the garbage collector ends takes five seconds.
    samples._shutdown_workers()
    return found


def built(**settings) -> Exception:
    return raised(build_model, Config(dict(default_scope='mmseg', model=settings)))


def full(monkeypatch, number: int, file: Path) -> Exception:
    def fsync(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, 'fsync', fsync)
    return raised(write_atomically, file, b'')


SYSTEM = [
    (OSError(errno.ENOSPC, 'No space left on device'), Kind.DISK, ['full', 'room']),
    (OSError(errno.EDQUOT, 'Disk quota exceeded', 'a.pth'), Kind.DISK, ['quota', 'a.pth']),
    (OSError(errno.EROFS, 'Read-only file system', '/x/1.log'), Kind.DISK, ['/x/1.log']),
    (FileNotFoundError(errno.ENOENT, 'No such file', 'data/1.jpg'), Kind.STORAGE, ['data/1.jpg']),
    (OSError(errno.ESTALE, 'Stale file handle'), Kind.STORAGE, ['Stale file handle']),
    (RuntimeError('DataLoader worker (pid 12) is killed by signal: Killed. '), Kind.PROCESS, []),
    (RuntimeError('DataLoader worker (pid(s) 1, 3) exited unexpectedly'), Kind.PROCESS, []),
    (
        RuntimeError('DataLoader worker (pid 7) is killed by signal: Bus error.'),
        Kind.PROCESS,
        ['/dev/shm', 'num_workers=1'],
    ),
    (RuntimeError('unable to write </torch_1>: No space (28)'), Kind.PROCESS, ['/dev/shm']),
    (torch.OutOfMemoryError('CUDA out of memory. Tried'), Kind.PROCESS, ['amp', 'batch_size=1']),
    (RuntimeError('[gloo] Connection closed by peer [127.0.0.1]:3'), Kind.PROCESS, []),
    (ModuleNotFoundError("No module named 'mmseg'"), Kind.PACKAGE, ['mmsegmentation ftfy regex']),
    (ModuleNotFoundError("No module named 'ftfy'"), Kind.PACKAGE, ['mmsegmentation ftfy regex']),
    (ModuleNotFoundError("No module named 'pkg_resources'"), Kind.PACKAGE, ['setuptools<81']),
    (ModuleNotFoundError("No module named 'mine'"), Kind.PACKAGE, ['mine', 'ptnt doctor']),
]


@pytest.mark.parametrize(('error', 'kind', 'names'), SYSTEM)
def test_a_cause_is_recognised(error: Exception, kind: Kind, names: list[str]):
    with second_of_two():
        found = explain(error, *Kind)
        assert found.kind is kind and all(name in str(found) for name in names)
        assert explain(error, *(set(Kind) - {kind, Kind.DATA})) is None


@pytest.mark.parametrize(
    'error',
    [
        ValueError('shapes differ'),
        KeyError('bbox'),
        ConnectionError('Connection reset by peer'),  # of one process
        OSError(errno.ENOMEM, 'Cannot allocate memory'),
        TypeError("Head.loss() got an unexpected keyword argument 'x'"),
        UserError('clear'),
        SyntaxError('of a text that is no file'),
    ],
)
def test_other_exceptions_have_no_cause(error: Exception):
    assert explain(error, *Kind) is None


def test_a_file_that_torch_only_names_in_the_text_of_a_worker_is_found():
    error = in_worker(FileNotFoundError(errno.ENOENT, 'No such file', 'data/1.jpg'))
    found = explain(error, *Kind)
    assert (found.kind, found.file) == (Kind.STORAGE, 'data/1.jpg') and '\n' not in str(found)


@pytest.mark.parametrize('number', [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_the_disk_is_to_blame_for_a_user_error_of_a_full_one(
    monkeypatch, tmp_path: Path, number: int
):
    error = full(monkeypatch, number, tmp_path / 'a.pth')
    assert str(tmp_path / 'a.pth') in str(explain(error, Kind.DISK))
    assert explain(UserError('no disk'), Kind.DISK) is None


def test_a_user_error_of_a_worker_keeps_only_its_words():
    assert str(explain(in_worker(UserError('a.jpg is damaged')), *Kind)) == 'a.jpg is damaged'


def test_an_absent_class_names_the_nearest():
    import_host('mmdet')
    assert "'PyramidTNT'" in str(built(type='PyramidTMT'))
    # Those of other libraries need their scope.
    assert "'mmdet.RetinaHead'" in str(built(type='RetinaHead'))


def test_a_refused_argument_names_the_nearest():
    explained = str(built(type=Derived, hiden_dim=3))
    assert all(name in explained for name in ('Derived', "'hiden_dim'", "'hidden_dim'"))


def test_a_bug_in_a_constructor_is_no_refusal():
    error = built(type=Buggy)
    assert explain(error.__cause__, *Kind) is None
    line = Buggy.__init__.__code__.co_firstlineno + 2
    assert f'({__file__}, line {line})' in str(error)
    assert "'scale'" in str(error)


def test_a_syntax_error_names_the_whole_path(tmp_path: Path):
    file = tmp_path / 'config.py'
    file.write_text('model =\n')
    error = raised(lambda: compile(file.read_text(), str(file), 'exec'))
    assert f'{file}, line 1' in str(explain(error, *Kind))


@pytest.mark.parametrize('kind', [str, int, list])
def test_a_dict_over_another_type_in_a_base_config(tmp_path: Path, kind: type):
    (tmp_path / 'base.py').write_text(f'model = dict(arch={kind(1 if kind is int else ())!r})\n')
    file = tmp_path / 'config.py'
    file.write_text("_base_ = 'base.py'\nmodel = dict(arch=dict(depths=(1, 1)))\n")
    error = raised(lambda: Config.fromfile(file))
    said = (
        f'arch is a dict, but of type {kind.__name__} in the base config. To replace it, add _del'
    )
    assert said in str(explain(error, *Kind))
    file.write_text(file.read_text().replace('depths', '_delete_=True, depths'))
    assert Config.fromfile(file).model.arch == dict(depths=(1, 1))


@pytest.mark.parametrize(
    ('error', 'message', 'named'),
    [
        (ValueError('\n  a\nb'), 'a', 'ValueError: a'),
        (ValueError(' '), 'ValueError', 'ValueError'),
        (KeyError('key'), "'key'", "KeyError: 'key'"),
        # Only what our own messages name between backquotes becomes a flag.
        (ValueError('`size` is odd'), "'size' is odd", "ValueError: 'size' is odd"),
        (UserError('`size=3`: no'), '`size=3`: no', 'UserError: `size=3`: no'),
    ],
)
def test_an_exception_in_one_line(tmp_path: Path, error: Exception, message: str, named: str):
    explained = str(built(type=Refusing, error=error)).removeprefix('the model cannot be built: ')
    assert explained.startswith(named if isinstance(error, KeyError) else message)
    file = tmp_path / 'config.py'
    file.write_text(f'from {UserError.__module__} import UserError\nraise {error!r}\n')
    if not isinstance(error, UserError):
        explained = str(raised(read_config, file))
        assert f' {named}' in explained and explained.endswith(f' ({file}, line 2)')


def test_an_exception_without_a_message_shows_its_line():
    class Unfinished(nn.Module):
        def __init__(self):
            raise NotImplementedError

    line = Unfinished.__init__.__code__.co_firstlineno + 1
    error = built(type=Unfinished)
    assert f'{Path(__file__).name}, line {line}: raise NotImplementedError' in str(error)


def test_an_exception_of_a_worker_in_one_line():
    error = built(type=Refusing, error=in_worker(ValueError('bad image')))
    assert 'cannot be built: ValueError: bad image (' in str(error)


def test_each_kind_has_a_row():
    assert {cause.kind for cause in CAUSES} == set(Kind)
