"""Create the objects of genuine checkpoints, after checking their arguments."""

import itertools
import math
from argparse import Namespace
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from torch import Tensor

from ptnt_mm.weights.reader.checkpoint_error import CheckpointError, require

MAX_NUMERIC_KEYS = 10_000  # an optimizer's state has one for each parameter
_MAX_NUMEL = 2**48  # the product of a shape, without its zeros; torch overflows at 2**63 bytes

_HISTORY = 'mmengine.logging.history_buffer.HistoryBuffer'

# Names that a file may use; numpy 1 and numpy 2 name the module of arrays differently.
NAMES = frozenset(
    f"""
    _codecs.encode builtins.bytes builtins.getattr builtins.set argparse.Namespace {_HISTORY}
    collections.Counter collections.OrderedDict numpy.dtype numpy.ndarray torch.Size torch.device
    numpy.core.multiarray._reconstruct numpy._core.multiarray._reconstruct
    numpy.core.multiarray.scalar numpy._core.multiarray.scalar
    torch._utils._rebuild_parameter torch._utils._rebuild_parameter_with_state
    torch._utils._rebuild_tensor torch._utils._rebuild_tensor_v2 torch._utils._rebuild_tensor_v3
    """.split()
)

_FLOATS = dict(Double='float64', Float='float32', Half='float16', BFloat16='bfloat16')
_OTHERS = dict(Long='int64', Int='int32', Short='int16', Char='int8', Byte='uint8', Bool='bool')
_KINDS = _FLOATS | _OTHERS | {'storage.Untyped': 'uint8'}
_NEW_DTYPES = ('uint16', 'uint32', 'uint64', 'float8_e4m3fn', 'float8_e5m2')
DTYPES = {f'torch.{name}': getattr(torch, name) for name in (*_KINDS.values(), *_NEW_DTYPES)}
STORAGES = {f'torch.{kind}Storage': getattr(torch, name) for kind, name in _KINDS.items()}
_NUMPY_DTYPES = ('b1', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8')


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a class or a function in the file."""

    path: str


@dataclass(slots=True, eq=False)
class Unfinished:
    """An object whose attributes follow in a later step."""

    name: Name
    arguments: tuple
    value: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """The bytes of tensors, as uint8, and their dtype."""

    data: Tensor
    dtype: torch.dtype


class Keys:
    """Checks that keys of dicts and sets are quick to hash, and that few are numbers.

    A number is its own hash in Python, so a file can choose numbers that collide, and each is found
    only after looking at most of the others. Hashes of text are random.
    """

    def __init__(self):
        self.numbers = 0

    def check(self, key: Any) -> Any:
        """Return a key; nested tuples and long integers take too long to hash and compare."""
        is_number = type(key) in (int, float)
        plain = is_number or type(key) in (str, bytes, bool, type(None))
        require(plain and not (type(key) is int and abs(key) >= 2**63), 'a key of an unusual kind')
        self.numbers += is_number
        require(self.numbers <= MAX_NUMERIC_KEYS, f'more than {MAX_NUMERIC_KEYS} numbers as keys')
        return key

    def check_all(self, keys: Iterable) -> None:
        """Check keys that will be hashed again."""
        for key in keys:
            self.check(key)


def make_object(name: Any, arguments: Any, keys: Keys) -> Any:
    """Create the object for which the file would call a class or a function."""
    require(type(name) is Name, 'a call of something that cannot be called')
    match name.path.rpartition('.')[2], arguments:
        case 'encode', (str(text), 'latin1'):
            return text.encode('latin1')
        case 'bytes', ():
            return b''
        case 'getattr', (Name(path), 'min' | 'max' | 'current' | 'mean') if path == _HISTORY:
            return None  # our HistoryBuffer has its own methods
        case 'set', ([*items],):
            return {keys.check(item) for item in items}
        case 'Counter', (dict(counts),):
            # Milestones of a learning rate.
            few = all(type(number) is int and 0 < number < 1000 for number in counts.values())
            require(few, 'a Counter that is not a list of milestones')
            return Counter(counts)
        case 'OrderedDict', () | ([*_],):
            pairs = itertools.chain(*arguments)
            return OrderedDict((keys.check(key), value) for key, value in pairs)
        case 'Size', (sides,):
            return torch.Size(_shape(sides))
        case 'device', (str(),) | (str(), int()):
            return torch.device(*arguments)
        case '_rebuild_tensor' | '_rebuild_tensor_v2', (storage, *rest):
            return _tensor(storage, *rest)
        case '_rebuild_tensor_v3', (Storage(data), _, _, _, _, _, torch.dtype() as dtype, *more):
            return _tensor(Storage(data, dtype), *arguments[1:6], *more)
        case '_rebuild_parameter' | '_rebuild_parameter_with_state', (Tensor(), bool(), *_):
            return torch.nn.Parameter(arguments[0].detach(), arguments[1])
        case 'scalar', (np.dtype() as dtype, bytes(data)):
            require(
                len(data) == dtype.itemsize, 'a numpy scalar whose size does not match its bytes'
            )
            return np.frombuffer(data, dtype)[0]
        case ('dtype' | '_reconstruct', (_, _, _)) | ('Namespace' | 'HistoryBuffer', ()):
            return Unfinished(name, arguments)  # its state comes as one more argument
        case 'dtype', (code, _, _, (_, order, None, None, None, -1, -1, 0)):
            require(code in _NUMPY_DTYPES and order in ('<', '>', '|'), 'an unusual numpy dtype')
            return np.dtype(code).newbyteorder(order)
        case '_reconstruct', (Name('numpy.ndarray'), _, _, (_, shape, kind, turned, bytes(data))):
            nbytes = math.prod(_shape(shape)) * kind.itemsize if isinstance(kind, np.dtype) else -1
            require(nbytes == len(data), 'a numpy array whose size does not match its bytes')
            return np.ndarray(shape, kind, data, order='F' if turned is True else 'C').copy('K')
        case 'Namespace', (dict(settings),):
            plain = all(key.isidentifier() and key[0] != '_' for key in settings)
            require(plain, 'a command line with settings of unusual names')
            return Namespace(**settings)
        case 'HistoryBuffer', ({'max_length': int(longest), **state},):
            logs = [state.get('_log_history'), state.get('_count_history')]
            plain = all(type(log) is np.ndarray and log.ndim == 1 for log in logs)
            require(plain and len(logs[0]) == len(logs[1]) <= longest, 'a log of unusual numbers')
            return HistoryBuffer(*logs, longest)
    raise CheckpointError(f'refused: it uses {name.path} in a way that no checkpoint does')


def finish(made: Any, state: Any, keys: Keys) -> Any:
    """Set the state of an object from the file."""
    if type(made) is Unfinished:
        made.value = make_object(made.name, (*made.arguments, state), keys)
        return made.value
    require(type(made) is OrderedDict, 'attributes of an object that has none')
    if type(state) is dict and '_metadata' in state:
        # Modules read the version of their weights there; nothing else is needed.
        versions = state['_metadata']
        plain = type(versions) in (dict, OrderedDict)
        plain = plain and all(type(version) is dict for version in versions.values())
        require(plain, 'weights with strange metadata')
        made._metadata = OrderedDict(versions)
    return made


def _shape(sides: Any) -> tuple[int, ...]:
    """Check that a shape is a short tuple of numbers that are not negative."""
    require(type(sides) is tuple and len(sides) <= 64, 'something without a shape')
    require(all(type(n) is int and 0 <= n < 2**62 for n in sides), 'an invalid shape')
    return sides


def check_size(size: Any) -> tuple[int, ...]:
    """Return the size of a tensor that torch can compute with, even if it is empty."""
    numel = math.prod(n or 1 for n in _shape(size))
    require(numel <= _MAX_NUMEL, 'a tensor of a size beyond all memory')
    return size


def _tensor(storage, offset, size, stride, grad=False, hooks=None, metadata=None) -> Tensor:
    """A plain strided tensor that lies inside its storage and is not larger."""
    require(type(storage) is Storage and not metadata, 'a tensor of an unusual kind')
    _shape((offset,))
    steps = zip(check_size(size), _shape(stride), strict=True)
    numel = math.prod(size)
    reach = offset + sum((n - 1) * step for n, step in steps) + 1 if numel else offset
    room = len(storage.data) // storage.dtype.itemsize
    require(max(numel, reach) <= room, 'a tensor beyond its storage')
    tensor = torch.empty(0, dtype=storage.dtype, device=storage.data.device)
    tensor.set_(storage.data.untyped_storage(), offset, size, stride)
    return tensor.requires_grad_(grad is True)
