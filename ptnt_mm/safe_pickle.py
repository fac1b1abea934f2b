"""Reading checkpoint files without running anything that they contain.

A ``.pth`` file is a pickle, and a pickle may call any function that its reader lets it name. With
``weights_only=True`` torch admits tensors alone, while the checkpoints of MMEngine hold a little
more: a ``HistoryBuffer`` for each logged value, made of numpy arrays and of a table of methods that
is fetched by ``builtins.getattr``. Admitting those names as they are opens the door again:

- ``getattr`` climbs from any object to ``__globals__`` and from there to every builtin;
- ``numpy.dtype`` takes a forged state that turns plain bytes into pointers to Python objects;
- ``numpy.ndarray`` takes a second state, which frees memory that a tensor may still look at;
- ``HistoryBuffer`` writes a table of the file into its own class.

So none of them is admitted. A guard stands under each name, does the one thing that an honest
checkpoint needs, and refuses everything else. What comes out are true ``HistoryBuffer`` objects and
true numbers.
"""

import argparse
import math
import os
import pickle
import re
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from torch.serialization import add_safe_globals, clear_safe_globals, get_safe_globals

from ptnt_mm.errors import UserError
from ptnt_mm.unsafe_switch import UNSAFE_SWITCH, is_on

# Torch's own: stands above a weights_only=False of whoever calls torch.load.
_SAFE_SWITCH = 'TORCH_FORCE_WEIGHTS_ONLY_LOAD'

# What an honest log of numbers is made of. No objects, no strings, no structures.
PLAIN_DTYPES = frozenset(('b1', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8'))

# The table that HistoryBuffer stores is made of these, its own methods.
HISTORY_METHODS = frozenset(('min', 'max', 'current', 'mean'))

# A loader of MMEngine's holds it while it calls our reader.
_lock = threading.RLock()


class CheckpointError(UserError):
    """A checkpoint cannot be used, or must not; the message says why and what to do."""


class _PlainDtype:
    """Stands under ``numpy.dtype``: one of ``PLAIN_DTYPES``, whatever state the file adds."""

    __slots__ = ('dtype',)

    def __new__(cls, code: str, align: object = False, copy: object = False) -> '_PlainDtype':
        if not isinstance(code, str) or code not in PLAIN_DTYPES:
            raise CheckpointError(f'refused: numpy.dtype({code!r}) is no plain kind of number')
        self = super().__new__(cls)
        self.dtype = np.dtype(code)
        return self

    def __setstate__(self, state: tuple) -> None:
        """Take the byte order; nothing else of a plain dtype's state says anything."""
        if not isinstance(state, tuple) or state[2:] != (None, None, None, -1, -1, 0):
            raise CheckpointError(f'refused: {state!r} is not the state of a plain numpy.dtype')
        if state[1] not in ('<', '>', '|', '='):
            raise CheckpointError(f'refused: {state[1]!r} is no byte order of a numpy.dtype')
        self.dtype = self.dtype.newbyteorder(state[1])


class _PlainArray(np.ndarray):
    """Stands under ``numpy.ndarray``: an array of plain numbers that takes its state once.

    It is written to a next checkpoint as the ordinary array that it equals.
    """

    _filled = True

    def __new__(cls, *args: object) -> '_PlainArray':
        if args:
            raise CheckpointError('refused: numpy.ndarray is read, not called')
        # Of a kind that no tensor can share, until it has its numbers.
        self = super().__new__(cls, (0,), np.void)
        self._filled = False
        return self

    def __setstate__(self, state: tuple) -> None:
        """Check that bytes, shape and dtype belong together, then become that array."""
        _, shape, dtype, fortran, data = state
        if self._filled:
            raise CheckpointError('refused: a numpy array is given a second state')
        if not isinstance(dtype, _PlainDtype) or not isinstance(data, bytes):
            raise CheckpointError('refused: a numpy array that is not made of plain numbers')
        if any(type(side) is not int or side < 0 for side in shape):
            raise CheckpointError(f'refused: {shape!r} is no shape of a numpy array')
        if math.prod(shape) * dtype.dtype.itemsize != len(data):
            raise CheckpointError(f'refused: {len(data)} bytes for a numpy array of shape {shape}')
        super().__setstate__((1, tuple(shape), dtype.dtype, bool(fortran), data))
        self._filled = True

    def __reduce_ex__(self, protocol: int) -> tuple:
        """Be pickled as a plain array."""
        return self.view(np.ndarray).__reduce_ex__(protocol)


class _PlainHistory(HistoryBuffer):
    """Stands under ``HistoryBuffer``: takes the logged numbers and becomes one.

    The stored table of statistics methods is left aside: the class has its own.
    """

    def __init__(self, *args: object) -> None:
        raise CheckpointError('refused: HistoryBuffer is read, not called')

    def __setstate__(self, state: dict) -> None:
        """Keep the numbers of a stored ``HistoryBuffer``."""
        values, counts = state['_log_history'], state['_count_history']
        for array in (values, counts):
            if type(array) is not _PlainArray or not array._filled or array.ndim != 1:
                raise CheckpointError('refused: a HistoryBuffer whose history is no row of numbers')
        if len(values) != len(counts):
            raise CheckpointError('refused: a HistoryBuffer with unequal histories')
        if type(state['max_length']) is not int or state['max_length'] < 1:
            raise CheckpointError('refused: a HistoryBuffer whose max_length is no count')
        self.max_length = state['max_length']
        self._log_history = values.view(np.ndarray).copy()
        self._count_history = counts.view(np.ndarray).copy()
        self._set_default_statistics()
        self.__class__ = HistoryBuffer


def _reconstruct(subtype: type, shape: tuple, code: bytes) -> _PlainArray:
    """Stands under ``numpy.core.multiarray._reconstruct``: the empty array that comes first."""
    if subtype is not _PlainArray:
        raise CheckpointError(f'refused: numpy is asked to rebuild a {subtype!r}')
    return _PlainArray()


def _scalar(dtype: _PlainDtype, data: bytes) -> np.generic:
    """Stands under ``numpy.core.multiarray.scalar``: one number from its bytes."""
    if not isinstance(dtype, _PlainDtype) or not isinstance(data, bytes):
        raise CheckpointError('refused: a numpy scalar that is no plain number')
    if len(data) != dtype.dtype.itemsize:
        raise CheckpointError(f'refused: {len(data)} bytes for a numpy scalar')
    return np.frombuffer(data, dtype.dtype)[0]


def _no_bytes(*args: object) -> bytes:
    """Stands under ``builtins.bytes``: the data of an array without elements."""
    if args:
        raise CheckpointError('refused: builtins.bytes is asked for more than no bytes')
    return b''


def _history_method(owner: type, name: str) -> Callable:
    """Stands under ``builtins.getattr``: HistoryBuffer's own methods, nothing else."""
    if owner is not _PlainHistory or not isinstance(name, str) or name not in HISTORY_METHODS:
        raise CheckpointError(
            f'refused: getattr({owner!r}, {name!r}); '
            f'only HistoryBuffer has methods that a checkpoint may name'
        )
    return getattr(HistoryBuffer, name)


# What may be named beside torch's own list, and what is found under the name.
ALLOWED: tuple[tuple[Callable, str], ...] = (
    (_PlainHistory, 'mmengine.logging.history_buffer.HistoryBuffer'),
    (_history_method, 'builtins.getattr'),
    (_PlainDtype, 'numpy.dtype'),
    (_PlainArray, 'numpy.ndarray'),
    # numpy 1 and numpy 2 spell this module differently.
    (_reconstruct, 'numpy.core.multiarray._reconstruct'),
    (_reconstruct, 'numpy._core.multiarray._reconstruct'),
    (_scalar, 'numpy.core.multiarray.scalar'),
    (_scalar, 'numpy._core.multiarray.scalar'),
    (_no_bytes, 'builtins.bytes'),
)

# The authors' and timm's training checkpoints keep their command line: admitted while we read.
_WHILE_READING = (*ALLOWED, (argparse.Namespace, 'argparse.Namespace'))


def allow_mmengine_checkpoints() -> None:
    """Let ``torch.load(..., weights_only=True)`` read MMEngine's checkpoints in this process."""
    add_safe_globals(list(ALLOWED))


def refuse_forced_unsafe_loading() -> None:
    """Stop if the environment makes ``torch.load`` run what a file contains.

    Raises:
        CheckpointError: ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD`` is on.
    """
    value = os.environ.get(UNSAFE_SWITCH, '')
    if is_on(value):
        raise CheckpointError(
            f'{UNSAFE_SWITCH}={value} makes torch run whatever code a checkpoint contains. '
            f'Checkpoints load here without it: unset {UNSAFE_SWITCH} and start again'
        )


def safe_load(path: str | os.PathLike, map_location: Any = 'cpu') -> dict:
    """Read a ``torch.save`` file that holds a dict, running nothing that it contains.

    Args:
        path: The file.
        map_location: Where its tensors go, as in ``torch.load``.

    Raises:
        CheckpointError: No such file, not a checkpoint, damaged, or one that names something which
            is not on the list of harmless names.
    """
    refuse_forced_unsafe_loading()
    path = Path(path).expanduser()
    head = check_file(path)
    if head[8:9] == b'{':
        name = path.with_suffix('.safetensors').name
        raise CheckpointError(f'{path}: is a safetensors file; rename it to {name}')
    try:
        with reading_safely():
            checkpoint = torch.load(path, map_location=map_location, weights_only=True)
    except CheckpointError as error:
        raise CheckpointError(f'{path}: {error}; nothing of the file was run') from None
    except Exception as error:  # a crafted or damaged file can make the reader raise anything
        raise CheckpointError(f'{path}: {explain(error)}') from error
    if not isinstance(checkpoint, dict):
        kind = type(checkpoint).__name__
        raise CheckpointError(f'{path}: holds a {kind}, expected a dict of weights')
    return checkpoint


@contextmanager
def reading_safely() -> Iterator[None]:
    """Make every ``torch.load`` inside safe, whoever calls it and whatever he asks for.

    For code of others, which may ask for ``weights_only=False``. While it runs, the whole process
    loads safely.
    """
    with _lock, _names_while_reading():
        before = os.environ.get(_SAFE_SWITCH)
        os.environ[_SAFE_SWITCH] = '1'
        try:
            yield
        finally:
            if before is None:
                del os.environ[_SAFE_SWITCH]
            else:
                os.environ[_SAFE_SWITCH] = before


@contextmanager
def _names_while_reading() -> Iterator[None]:
    """Admit exactly our guards under their names, beside what the user himself admitted.

    Another plugin may have admitted the true ``getattr`` or ``HistoryBuffer``; torch would then
    take either, by chance.
    """
    before = get_safe_globals()
    ours = {name for _, name in _WHILE_READING}
    clear_safe_globals()
    add_safe_globals([entry for entry in before if _name_of(entry) not in ours])
    add_safe_globals(list(_WHILE_READING))
    try:
        yield
    finally:
        clear_safe_globals()
        add_safe_globals(before)


def _name_of(entry: Any) -> str:
    """The name under which torch admits an entry of its list."""
    return entry[1] if isinstance(entry, tuple) else f'{entry.__module__}.{entry.__qualname__}'


def check_file(path: Path) -> bytes:
    """Tell what is certainly no checkpoint, before torch's words for it confuse; give its head.

    Raises:
        CheckpointError: No such file, a folder, an empty file, a web page, a git-lfs pointer, text,
            or an archive that is cut off.
    """
    if path.is_dir():
        raise CheckpointError(f'{path}: is a folder; give the checkpoint file inside it')
    if not path.is_file():
        raise CheckpointError(f'{path}: no such file')
    with path.open('rb') as file:
        head = file.read(512)
    if not head:
        raise CheckpointError(f'{path}: is empty; download it again')
    if head.startswith(b'version https://git-lfs'):
        raise CheckpointError(f"{path}: is a git-lfs pointer; run 'git lfs pull' to get the file")
    if head.lstrip().lower().startswith((b'<!doctype', b'<html', b'<?xml')):
        raise CheckpointError(f'{path}: is a web page; download the checkpoint by a direct link')
    if head.startswith(b'PK') and not zipfile.is_zipfile(path):
        raise CheckpointError(f'{path}: is cut off before its end; download it again')
    if _is_text(head):
        raise CheckpointError(f'{path}: is a text file, not a checkpoint')
    return head


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        # A character may be cut in two at the end of what was read.
        text = head[: error.start].decode() if error.start > len(head) - 4 else '\0'
    return all(character.isprintable() or character.isspace() for character in text)


def explain(error: Exception) -> str:
    """What a failure of ``torch.load`` means for the one who has the file."""
    name = re.search(r'GLOBAL (\S+)', str(error))
    if isinstance(error, pickle.UnpicklingError) and name:
        return (
            f'refused, it asks for {name[1]!r}, which is not on the list of harmless names; '
            'nothing of the file was run. Ask its author for the weights as plain tensors'
        )
    if 'TorchScript' in str(error):
        return 'is a TorchScript program, not a file of weights'
    reason = str(error).rsplit('WeightsUnpickler error:')[-1].strip() or 'no reason given'
    reason = f'{type(error).__name__}: {reason.splitlines()[0]}'
    if re.search('Trying to call reduce|Can only (build|create|append|extend|SETITEM)', reason):
        return f'refused, it does what no file of weights does ({reason})'
    return f'is no checkpoint that torch can read, or is damaged ({reason})'
