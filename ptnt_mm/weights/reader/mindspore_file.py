"""Read MindSpore's ``.ckpt`` files: names and tensors in a protocol buffer, without any code.

MindSpore publishes the format as mindspore/ccsrc/utils/checkpoint.proto: a Checkpoint repeats (1) a
Value of a name (1) and a TensorProto (2), which has dims (1), a type (2) and a content (3). A large
tensor is cut into several values of one name.
"""

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ptnt_mm.utils.text import printable
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError, require
from ptnt_mm.weights.reader.objects import check_size

_MAX_VALUES = 50_000  # in one file; a network has a few thousand
_MAX_FIELDS = 32  # of a value or a tensor: most are dims
_VARINT, _BYTES = 0, 2  # the wire types of the format

_DTYPES = {
    **{f'Float{bits}': getattr(torch, f'float{bits}') for bits in (16, 32, 64)},
    **{f'Int{bits}': getattr(torch, f'int{bits}') for bits in (8, 16, 32, 64)},
    **dict(UInt8=torch.uint8, Bool=torch.bool, BFloat16=torch.bfloat16),
}


def load_mindspore(file: Path, map_location: Any) -> dict[str, Tensor]:
    """Read all tensors of a file.

    Raises:
        CheckpointError: if it is damaged, or has tensors of an unsupported size or dtype.
    """
    content = memoryview(file.read_bytes())
    end = -17 if content[-17:-10] == b'crc_num' else None  # an optional checksum
    try:
        parts = defaultdict(list)
        for value in _fields(content[:end], _MAX_VALUES)[1]:
            (name,), (tensor,) = (_fields(value)[number] for number in (1, 2))
            parts[str(name, 'utf-8')].append(_fields(tensor))
        weights = {name: _tensor(name, slices) for name, slices in parts.items()}
    except (ValueError, TypeError, IndexError) as error:
        what = 'is not a MindSpore checkpoint, or is truncated'
        raise CheckpointError(f'{what} ({printable(str(error))})') from error
    device = map_location if isinstance(map_location, (str, torch.device)) else 'cpu'
    return {name: weight.to(device) for name, weight in weights.items()}


def _tensor(name: str, slices: list[dict[int, list]]) -> Tensor:
    """Create a tensor from the fields of all its slices."""
    dims, (kind,) = slices[0][1], slices[0][2]
    shape = () if dims == [0] else tuple(dims)
    check_size(shape)
    dtype = _DTYPES.get(str(kind, 'utf-8'))
    require(dtype is not None, f'{name} is of an unsupported type')
    content = bytearray().join(content for fields in slices for content in fields[3])
    if len(content) != math.prod(shape) * dtype.itemsize:
        raise ValueError(f'{name} has {len(content)} bytes for the shape {shape}')
    flat = torch.frombuffer(content, dtype=dtype) if content else torch.empty(0, dtype=dtype)
    return flat.reshape(shape)


def _fields(message: memoryview, limit: int = _MAX_FIELDS) -> dict[int, list]:
    """The fields of a message by number: integers, and byte strings, which are not copied."""
    fields, at = defaultdict(list), 0
    for _ in range(limit + 1):
        if at == len(message):
            return fields
        key, at = _varint(message, at)
        value, at = _varint(message, at)
        if key & 7 == _BYTES:
            start, at = at, at + value
            value = message[start:at]
        elif key & 7 != _VARINT:
            raise ValueError(f'wire type {key & 7}')
        if at > len(message):
            raise ValueError('a field is longer than its message')
        fields[key >> 3].append(value)
    raise ValueError(f'more than {limit} fields')


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """The integer at a position, 7 bits in each byte, and the position after it."""
    number = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        number, at = number | (byte & 127) << shift, at + 1
        if byte < 128:
            return number, at
    raise ValueError('an integer of more than 10 bytes')
