"""The files that ``torch.save`` writes: zip archives, and the format that came before torch 1.6."""

import io
import os
import re
import sys
import zipfile
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, BinaryIO

import torch
from torch import Tensor

from ptnt_mm.utils.errors import message_of
from ptnt_mm.utils.text import printable
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError, require
from ptnt_mm.weights.reader.objects import STORAGES, Name, Storage
from ptnt_mm.weights.reader.pickle_reader import unpickle

# In bytes. A log of a million iterations takes 24 MB for each quantity; an archive's table of
# contents becomes ten times as long in memory.
_MAX_PICKLE = 2**28
_MAX_CONTENTS = 2**24

_MAGIC = 0x1950A86A20F9469CFC6C


def load_torch_file(f: Any, map_location: Any = None, *_: Any, **__: Any) -> Any:
    """Read a file of ``torch.save`` completely into memory; has the signature of ``torch.load``.

    Raises:
        CheckpointError: if it is damaged, or contains something that no genuine checkpoint does.
    """
    try:
        with open(f, 'rb') if isinstance(f, (str, os.PathLike)) else nullcontext(f) as file:
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            is_zip = file.read(4) == b'PK\x03\x04'
            file.seek(0)
            return (_load_zip if is_zip else _load_legacy)(file, size, map_location)
    except CheckpointError as error:
        raise CheckpointError(f'{error}; no code in the file was run') from None
    except Exception as error:  # invalid opcodes can raise anything
        what = 'is not a checkpoint that torch can read, or is damaged'
        reason = printable(f'{type(error).__name__}: {message_of(error)}')
        raise CheckpointError(f'{what} ({reason})') from error


def _load_zip(file: BinaryIO, size: int, map_location: Any) -> Any:
    archive = _open_zip(file)
    entries = {entry.filename: entry for entry in archive.infolist()}
    require(len(entries) == len(archive.infolist()), 'an archive with duplicate entry names')
    root = archive.infolist()[0].filename.split('/')[0]
    if f'{root}/constants.pkl' in entries:
        raise CheckpointError('is a TorchScript program, not a file of weights')
    stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries.values())
    require(stored, 'a compressed archive, which torch never writes')
    order = f'{root}/byteorder'
    swap = order in entries and archive.open(order).read(8) != sys.byteorder.encode()
    pickle = archive.open(f'{root}/data.pkl').read(_MAX_PICKLE)
    storages = _Storages(size, map_location)
    value = unpickle(io.BytesIO(pickle), storages, size)
    for key, storage in storages.known.items():
        entry = entries.get(f'{root}/data/{key}')
        fits = entry is not None and entry.file_size == len(storage.data)
        require(fits, 'a tensor without its bytes')
        _fill(storage, archive.open(entry), swap)
    return value


def _open_zip(file: BinaryIO) -> zipfile.ZipFile:
    """Open an archive; zipfile reads its table of contents at once, however long that is."""

    def read(length: int = -1) -> bytes:
        require(length <= _MAX_CONTENTS, 'an archive with a huge table of contents')
        return file.read(length if length >= 0 else _MAX_CONTENTS)

    limited = SimpleNamespace(read=read, seek=file.seek, tell=file.tell, seekable=file.seekable)
    archive = zipfile.ZipFile(limited)
    limited.read = file.read  # entries have separate limits
    return archive


def _load_legacy(file: BinaryIO, size: int, map_location: Any) -> Any:
    """Read five pickles, one after the other, and then the bytes of all tensors."""
    head = io.BytesIO(file.read(_MAX_PICKLE))
    storages = _Storages(size, map_location)
    magic, _, system, value, keys = (unpickle(head, storages, size) for _ in range(5))
    require(magic == _MAGIC and type(system) is dict, 'it does not begin like a file of torch')
    named = type(keys) is list and all(type(key) is str for key in keys)
    require(named and set(keys) == set(storages.known), 'tensors without their bytes')
    swap = system.get('little_endian', True) is not (sys.byteorder == 'little')
    file.seek(head.tell())
    for key in keys:
        storage = storages.known[key]
        counted = int.from_bytes(file.read(8), 'little') * storage.dtype.itemsize
        require(counted == len(storage.data), 'a tensor whose size does not match its bytes')
        _fill(storage, file, swap)
    return value


class _Storages:
    """Allocates the storages of tensors, at most ``room`` bytes in all, the size of the file."""

    def __init__(self, room: int, map_location: Any):
        self.room = room
        self.map_location = map_location
        self.known: dict[str, Storage] = {}

    def __call__(self, persistent_id: Any) -> Storage:
        """Find the storage of an id: its kind, class, key, device, number of elements."""
        match persistent_id:
            case ('storage', Name(path), str(key), str(place), int(numel), *view):
                usual = path in STORAGES and numel >= 0 and all(part is None for part in view)
            case _:
                usual = False
        require(usual, 'a tensor of an unusual kind')
        dtype = STORAGES[path]
        length = numel * dtype.itemsize
        if key not in self.known:
            self.room -= length
            require(self.room >= 0, 'tensors that are larger than the file')
            data = torch.empty(length, dtype=torch.uint8)
            self.known[key] = Storage(self.placed(data, place), dtype)
        data = self.known[key].data
        require(len(data) == length, 'a tensor whose size does not match its bytes')
        return Storage(data, dtype)

    def placed(self, data: Tensor, place: str) -> Tensor:
        """Move a storage to the caller's device, by default that of the file."""
        wanted = self.map_location
        if callable(wanted):
            wanted = getattr(wanted(data.untyped_storage(), place), 'device', None)
        elif isinstance(wanted, dict):
            wanted = wanted.get(place)
        usual = wanted or re.fullmatch(r'[a-z]+(:\d+)?', place)
        require(bool(usual), 'an unexpected device')
        return data.to(wanted or place)


def _fill(storage: Storage, source: BinaryIO, swap: bool) -> None:
    """Read the bytes of a storage; ``swap`` if they have the other byte order."""
    data = storage.data if storage.data.is_cpu else torch.empty_like(storage.data, device='cpu')
    if source.readinto(data.numpy()) < len(data):
        raise EOFError('the bytes of its tensors are truncated')
    if swap:
        data.untyped_storage().byteswap(storage.dtype)
    storage.data.copy_(data)
