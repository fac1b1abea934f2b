"""A small interpreter of pickles, in whose world there is nothing to call.

A pickle names classes and functions and says what to call them with. Here a name stays a name: it
is compared with the few that honest checkpoints use, its arguments are checked, and we make the
object. No class or function of torch, numpy, MMEngine or Python is ever on the stack, so no file
can call one, change one or set its attributes.
"""

import io
import math
from argparse import Namespace
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pickletools import genops
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from torch import Tensor

from ptnt_mm.checkpoints.errors import CheckpointError, require
from ptnt_mm.utils.text import printable

MAX_STEPS = 500_000  # opcodes, and objects of what comes out; a tensor takes about 30 opcodes
MAX_DEPTH = 64  # containers inside containers
MAX_SHARING = 64  # bytes of tensors for a byte of the file; heads share weights about six times

_HISTORY = 'mmengine.logging.history_buffer.HistoryBuffer'

# What a file may name; numpy 1 and numpy 2 spell the module of arrays differently.
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

_CONTAINERS = (list, tuple, set, dict, OrderedDict, Counter, Namespace)
_LEAVES = (str, bytes, int, float, bool, type(None), Tensor, torch.nn.Parameter, torch.dtype)
_LEAVES += (torch.device, torch.Size, np.ndarray, HistoryBuffer)


@dataclass(frozen=True, slots=True)
class Name:
    """What the file calls something by."""

    path: str


@dataclass(slots=True, eq=False)
class Unfinished:
    """An object that the file has announced; its attributes come in a later step."""

    path: str
    code: str = ''
    value: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """The bytes that tensors look at, as uint8, and how to read them."""

    data: Tensor
    dtype: torch.dtype


def unpickle(stream: io.BytesIO, find_storage: Callable[[Any], Storage], size: int) -> Any:
    """Read one pickle and leave the stream behind it.

    Args:
        stream: The pickle, and whatever follows it.
        find_storage: Gives a tensor's bytes for the persistent id that the file has for them.
        size: Bytes of the whole file.

    Raises:
        CheckpointError: It does what no honest checkpoint does.
        Exception: It is damaged; steps that make no sense raise whatever Python raises.
    """
    machine = _Machine(find_storage, 4 * stream.getbuffer().nbytes)
    for count, (opcode, argument, _) in enumerate(genops(stream)):
        require(count < MAX_STEPS, f'a pickle of more than {MAX_STEPS} steps')
        machine.step(opcode.name, argument)
    (value,) = machine.stack
    _check(value, MAX_SHARING * size)
    return value


class _Machine:
    """The stack of a pickle, and its numbered objects."""

    def __init__(self, find_storage: Callable[[Any], Storage], credit: int):
        self.find_storage = find_storage
        self.credit = credit  # bytes and items to make objects of; honest files use none twice
        self.stack: list = []
        self.outer: list[list] = []
        self.memo: dict[int, Any] = {}

    def step(self, opcode: str, argument: Any) -> None:
        stack = self.stack
        match opcode:
            case 'BINGET' | 'LONG_BINGET':
                stack.append(self.recall(argument))
            case 'BINPUT' | 'LONG_BINPUT':
                self.memo[argument] = stack[-1]
            case 'BINUNICODE' | 'BININT' | 'BININT1' | 'BININT2' | 'LONG1' | 'BINFLOAT' | 'NONE':
                stack.append(argument)
            case 'SHORT_BINSTRING':
                stack.append(argument)
            case 'NEWTRUE' | 'NEWFALSE':
                stack.append(opcode == 'NEWTRUE')
            case 'EMPTY_LIST' | 'EMPTY_DICT':
                stack.append([] if opcode == 'EMPTY_LIST' else {})
            case 'EMPTY_TUPLE' | 'TUPLE1' | 'TUPLE2' | 'TUPLE3':
                length = 0 if opcode == 'EMPTY_TUPLE' else int(opcode[-1])
                stack.append(tuple([stack.pop() for _ in range(length)][::-1]))
            case 'MARK':
                self.outer.append(stack)
                self.stack = []
            case 'TUPLE' | 'APPENDS' | 'SETITEMS':
                self.stack = self.outer.pop()
                if opcode == 'TUPLE':
                    self.stack.append(tuple(stack))
                else:
                    self.extend(stack)
            case 'APPEND' | 'SETITEM':
                number = 1 if opcode == 'APPEND' else 2
                self.extend([stack.pop() for _ in range(number)][::-1])
            case 'GLOBAL':
                stack.append(_name(*argument.split(' ', 1)))
            case 'BINPERSID':
                stack.append(self.find_storage(stack.pop()))
            case 'REDUCE' | 'NEWOBJ' | 'BUILD':
                what, about = stack.pop(-2), stack.pop()
                self.charge(about)
                stack.append((_build if opcode == 'BUILD' else _make)(what, about))
            case 'PROTO' | 'STOP':
                require(not self.outer, 'a mark without an end')
            case _:
                raise CheckpointError(f'refused: the opcode {opcode}')

    def recall(self, index: int) -> Any:
        value = self.memo[index]
        if type(value) is Unfinished:
            value = value.value
            require(value is not None, 'an object that is used before it is complete')
        return value

    def extend(self, items: list) -> None:
        """Put items into the list or dict that lies on the stack."""
        if type(self.stack[-1]) is list:
            self.stack[-1].extend(items)
        else:
            require(type(self.stack[-1]) in (dict, OrderedDict), 'items of what has none')
            pairs = zip(items[::2], items[1::2], strict=True)
            self.stack[-1].update((_key(key), value) for key, value in pairs)

    def charge(self, about: Any) -> None:
        require(type(about) in (tuple, dict), 'something is made of nothing')
        parts = about.values() if type(about) is dict else about
        sized = (str, bytes, list, tuple, dict, OrderedDict)
        self.credit -= len(about) + sum(len(part) for part in parts if type(part) in sized)
        require(self.credit >= 0, 'a long text or list that is used many times')


def _name(module: str, name: str) -> Name | torch.dtype:
    # Protocol 2 spells it as Python 2 did.
    path = f'{"builtins" if module == "__builtin__" else module}.{name}'
    if path in DTYPES:
        return DTYPES[path]
    if path not in NAMES and path not in STORAGES:
        raise CheckpointError(
            f'refused, it asks for {printable(path, 80)!r}, which is not on the list of harmless '
            'names. Ask its author for the weights as plain tensors'
        )
    return Name(path)


def _key(key: Any) -> Any:
    """A key that is quick to hash and to compare: nested tuples are not, nor long integers."""
    plain = type(key) in (str, bytes, float, bool, type(None))
    require(plain or (type(key) is int and abs(key) < 2**63), 'a key of an unusual kind')
    return key


def _make(name: Any, arguments: Any) -> Any:
    """What the file wants to call, made by us."""
    require(type(name) is Name, 'a call of what cannot be called')
    match name.path.replace('._core.', '.core.'), arguments:
        case '_codecs.encode', (str(text), 'latin1'):
            return text.encode('latin1')
        case 'builtins.bytes', ():
            return b''
        case 'builtins.getattr', (Name(path), 'min' | 'max' | 'current' | 'mean'):
            # The methods of HistoryBuffer, which has its own.
            require(path == _HISTORY, f'getattr of {path}')
            return None
        case 'builtins.set', ([*items],):
            return {_key(item) for item in items}
        case 'collections.Counter', (dict(counts),):
            # Milestones of a learning rate.
            few = all(type(number) is int and 0 < number < 1000 for number in counts.values())
            require(few, 'a Counter that is no list of milestones')
            return Counter(counts)
        case 'collections.OrderedDict', ():
            return OrderedDict()
        case 'collections.OrderedDict', ([*pairs],):
            return OrderedDict((_key(key), value) for key, value in pairs)
        case 'torch.Size', (sides,):
            return torch.Size(_shape(sides))
        case 'torch.device', (str(),) | (str(), int()):
            return torch.device(*arguments)
        case 'torch._utils._rebuild_tensor' | 'torch._utils._rebuild_tensor_v2', (storage, *rest):
            return _tensor(storage, *rest)
        case 'torch._utils._rebuild_tensor_v3', (Storage(data), _, _, _, _, _, dtype, *more):
            require(type(dtype) is torch.dtype, 'a tensor without a dtype')
            return _tensor(Storage(data, dtype), *arguments[1:6], *more)
        case (
            'torch._utils._rebuild_parameter' | 'torch._utils._rebuild_parameter_with_state',
            (Tensor() as data, bool(grad), *_),
        ):
            return torch.nn.Parameter(data.detach(), grad)
        case 'numpy.dtype', (str(code), bool(), bool()) if code in _NUMPY_DTYPES:
            return Unfinished(name.path, code)
        case 'numpy.core.multiarray._reconstruct', (Name('numpy.ndarray'), (0,), bytes()):
            return Unfinished('numpy.ndarray')
        case 'numpy.core.multiarray.scalar', (np.dtype() as dtype, bytes(data)):
            require(len(data) == dtype.itemsize, 'a numpy scalar of another size than its bytes')
            return np.frombuffer(data, dtype)[0]
        case 'argparse.Namespace' | 'mmengine.logging.history_buffer.HistoryBuffer', ():
            return Unfinished(name.path)
    raise CheckpointError(f'refused: it uses {name.path} as no checkpoint does')


def _build(announced: Any, state: Any) -> Any:
    """The finished object."""
    if type(announced) is OrderedDict:
        match state:
            # Modules look for the version of their weights there; nothing else is of use.
            case {'_metadata': dict(versions)}:
                plain = all(type(version) is dict for version in versions.values())
                require(plain, 'weights with strange metadata')
                announced._metadata = OrderedDict(versions)
        return announced
    require(type(announced) is Unfinished, 'attributes of what has none')
    match announced.path, state:
        case 'numpy.dtype', (_, '<' | '>' | '|' as order, None, None, None, -1, -1, 0):
            value = np.dtype(announced.code).newbyteorder(order)
        case 'numpy.ndarray', (_, shape, np.dtype() as dtype, bool(fortran), bytes(data)):
            fits = math.prod(_shape(shape)) * dtype.itemsize == len(data)
            require(fits, 'a numpy array of another size than its bytes')
            value = np.ndarray(shape, dtype, data, order='F' if fortran else 'C').copy('K')
        case 'argparse.Namespace', dict():
            plain = all(key.isidentifier() and key[0] != '_' for key in state)
            require(plain, 'a command line with settings of unusual names')
            value = Namespace(**state)
        case _, {
            '_log_history': np.ndarray(ndim=1) as values,
            '_count_history': np.ndarray(ndim=1) as counts,
            'max_length': int(longest),
        } if announced.path == _HISTORY and len(values) == len(counts) and longest > 0:
            value = HistoryBuffer(max_length=longest)
            value._log_history, value._count_history = values, counts
        case _:
            raise CheckpointError(f'refused: it uses {announced.path} as no checkpoint does')
    announced.value = value
    return value


def _shape(sides: Any) -> tuple[int, ...]:
    """A few numbers that are not negative; the product of many takes for ever."""
    require(type(sides) is tuple and len(sides) <= 64, 'something without a shape')
    require(all(type(n) is int and 0 <= n < 2**62 for n in sides), 'something of a strange shape')
    return sides


def _tensor(storage, offset, size, stride, grad=False, hooks=None, metadata=None) -> Tensor:
    """A plain strided tensor that lies inside its storage and is no larger than that."""
    require(type(storage) is Storage and not metadata, 'a tensor of an unusual kind')
    _shape((offset,))
    steps = zip(_shape(size), _shape(stride), strict=True)
    numel = math.prod(size)
    reach = offset + sum((n - 1) * step for n, step in steps) + 1 if numel else offset
    room = len(storage.data) // storage.dtype.itemsize
    require(max(numel, reach) <= room, 'a tensor beyond its storage')
    tensor = torch.empty(0, dtype=storage.dtype, device=storage.data.device)
    tensor.set_(storage.data.untyped_storage(), offset, size, stride)
    return tensor.requires_grad_(grad is True)


def _check(value: Any, nbytes: int) -> None:
    """Check that somebody can print, copy and compare what comes out.

    Shared parts count as often as they are seen: a file of 1 kB can hold a tuple of 2**60 objects.

    Raises:
        CheckpointError: It is too much or too deep, or holds what belongs into no checkpoint.
    """
    todo, seen = [(value, 0)], 1
    while todo:
        value, level = todo.pop()
        if type(value) in _CONTAINERS:
            children = [*getattr(value, '__dict__', {}).values()]
            if type(value) is not Namespace:
                children += [*value, *(value.values() if isinstance(value, dict) else ())]
            seen += len(children)
            todo += [(child, level + 1) for child in children]
        else:
            plain = type(value) in _LEAVES or isinstance(value, np.generic)
            require(plain, f'what should be data is a {type(value).__name__}')
            seen += len(value) // 100 if type(value) in (str, bytes) else 0
            nbytes -= value.nbytes if isinstance(value, Tensor) else 0
        require(level <= MAX_DEPTH, f'containers more than {MAX_DEPTH} deep, or inside themselves')
        require(seen <= MAX_STEPS, f'more than {MAX_STEPS} objects')
        require(nbytes >= 0, f'tensors more than {MAX_SHARING} times as large as the file')
