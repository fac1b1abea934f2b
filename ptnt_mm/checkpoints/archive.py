"""The files that ``torch.save`` writes: zip archives, and what torch wrote before 1.6."""

import io
import re
import sys
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO

import torch
from torch import Tensor

from ptnt_mm.checkpoints.errors import CheckpointError, require
from ptnt_mm.checkpoints.pickle_reader import STORAGES, Name, Storage, unpickle

MAX_PICKLE = 2**28
"""Bytes. A log of a million iterations takes 24 MB for each quantity."""

_MAGIC = 0x1950A86A20F9469CFC6C
_CHUNK = 2**20
_MOST = 16 * _CHUNK


def load(file: BinaryIO, map_location: Any) -> Any:
    """Read what ``torch.save`` wrote, whole, into memory.

    Args:
        file: Open and seekable.
        map_location: Where tensors go, as in ``torch.load``.

    Raises:
        CheckpointError: It does what no honest checkpoint does.
        Exception: It is damaged.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    is_zip = file.read(4) == b'PK\x03\x04'
    file.seek(0)
    return (_load_zip if is_zip else _load_legacy)(file, size, map_location)


class _SmallReads:
    """A file that zipfile reads: its table of contents is read at once, and grows in memory."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        require(size <= _MOST, 'an archive with a huge table of contents')
        return self._file.read(size if size >= 0 else _MOST)


def _load_zip(file: BinaryIO, size: int, map_location: Any) -> Any:
    archive = zipfile.ZipFile(_SmallReads(file))
    entries = {entry.filename: entry for entry in archive.infolist()}
    require(len(entries) == len(archive.infolist()), 'an archive with two entries of one name')
    root = archive.infolist()[0].filename.split('/')[0]
    if f'{root}/constants.pkl' in entries:
        raise CheckpointError('is a TorchScript program, not a file of weights')
    stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries.values())
    require(stored, 'an archive that is compressed, as torch writes none')
    pickle = archive.open(f'{root}/data.pkl').read(MAX_PICKLE)
    order = f'{root}/byteorder'
    swap = order in entries and archive.open(order).read(8) != sys.byteorder.encode()

    def fetch(key: str, length: int, dtype: torch.dtype) -> Tensor:
        entry = entries.get(f'{root}/data/{key}')
        require(entry is not None and entry.file_size == length, 'a tensor without its bytes')
        return _read(archive.open(entry), length, dtype if swap else None)

    return unpickle(io.BytesIO(pickle), _Storages(fetch, size, map_location), size)


def _load_legacy(file: BinaryIO, size: int, map_location: Any) -> Any:
    """Read five pickles, one after the other, and then the bytes of all tensors."""
    head = io.BytesIO(file.read(MAX_PICKLE))
    find = _Storages(lambda key, length, _: _empty(length), size, map_location)
    magic, _, system = (unpickle(head, find, size) for _ in range(3))
    require(magic == _MAGIC and type(system) is dict, 'it does not begin as a file of torch does')
    swap = system.get('little_endian', True) is not (sys.byteorder == 'little')
    value = unpickle(head, find, size)
    keys = unpickle(head, find, size)
    require(set(keys) == set(find.known), 'tensors without their bytes')
    file.seek(head.tell())
    for key in keys:
        storage = find.known[key]
        length = len(storage.data)
        counted = int.from_bytes(file.read(8), 'little') * storage.dtype.itemsize
        require(counted == length, 'a tensor of another size than its bytes')
        storage.data.copy_(_read(file, length, storage.dtype if swap else None))
    return value


class _Storages:
    """Finds the bytes of tensors, and takes each of them to its device once.

    Args:
        fetch: Called with a storage's key, its length in bytes and its dtype.
        room: Bytes that all storages together may have.
        map_location: As in ``torch.load``.
    """

    def __init__(self, fetch: Callable, room: int, map_location: Any):
        self.fetch = fetch
        self.room = room
        self.map_location = map_location
        self.known: dict[str, Storage] = {}

    def __call__(self, persistent_id: Any) -> Storage:
        """Find the storage of an id: what it is, class, key, device, number of elements."""
        match persistent_id:
            case ('storage', Name(path), str(key), str(place), int(numel), *view):
                usual = path in STORAGES and numel >= 0 and all(part is None for part in view)
                require(usual, 'a tensor of an unusual kind')
            case _:
                raise CheckpointError('refused: a tensor that is stored in an unusual way')
        dtype = STORAGES[path]
        length = numel * dtype.itemsize
        if key not in self.known:
            self.room -= length
            require(self.room >= 0, 'tensors that are larger than the file')
            data = self.placed(self.fetch(key, length, dtype), place)
            self.known[key] = Storage(data, dtype)
        data = self.known[key].data
        require(len(data) == length, 'a tensor of another size than its bytes')
        return Storage(data, dtype)

    def placed(self, data: Tensor, place: str) -> Tensor:
        """Move a storage to the device that the caller wants, or else to that of the file."""
        wanted = self.map_location
        if callable(wanted):
            moved = wanted(data.untyped_storage(), place)
            if moved is not None:
                return _empty(0, moved.device).set_(moved)
            wanted = None
        elif isinstance(wanted, dict):
            wanted = wanted.get(place)
        if wanted is None:
            require(re.fullmatch(r'[a-z]+(:\d+)?', place) is not None, 'a strange device')
        return data.to(wanted or place)


def _empty(length: int, device: Any = 'cpu') -> Tensor:
    return torch.empty(length, dtype=torch.uint8, device=device)


def _read(source: BinaryIO, length: int, swapped: torch.dtype | None) -> Tensor:
    """Read a storage; of a machine with another byte order if a dtype is given."""
    data = _empty(length)
    for start in range(0, length, _CHUNK):
        part = data[start : start + _CHUNK].numpy()
        content = source.read(len(part))
        if len(content) < len(part):
            raise EOFError('the bytes of its tensors are cut off')
        part[:] = memoryview(content)
    if swapped is not None:
        data.untyped_storage().byteswap(swapped)
    return data
