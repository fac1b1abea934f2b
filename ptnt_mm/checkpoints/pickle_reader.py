"""A small interpreter of pickles that has nothing to call.

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
_TAKES = {'EMPTY_TUPLE': 0, 'TUPLE1': 1, 'TUPLE2': 2, 'TUPLE3': 3, 'APPEND': 1, 'SETITEM': 2}
_NUMPY_DTYPES = ('b1', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8')

_CONTAINERS = (list, tuple, set, dict, OrderedDict, Counter, Namespace)
_LEAVES = (str, bytes, int, float, bool, type(None), Tensor, torch.nn.Parameter, torch.dtype)
_LEAVES += (torch.device, torch.Size, np.ndarray, HistoryBuffer)


@dataclass(frozen=True, slots=True)
class Name:
    """What the file calls a class or a function by."""

    path: str


@dataclass(slots=True, eq=False)
class Unfinished:
    """An object that the file has announced; its attributes come in a later step."""

    name: Name
    arguments: tuple
    value: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """The bytes of tensors, as uint8, and the dtype to read them as."""

    data: Tensor
    dtype: torch.dtype


def unpickle(stream: io.BytesIO, find_storage: Callable[[Any], Storage], size: int) -> Any:
    """Read one pickle of a file of ``size`` bytes, and leave the stream behind it.

    ``find_storage`` gives the bytes of a tensor for the persistent id that stands for them.

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
                value = self.memo[argument]
                finished = type(value) is Unfinished and value.value is not None
                stack.append(value.value if finished else value)
            case 'BINPUT' | 'LONG_BINPUT':
                self.memo[argument] = stack[-1]
            case 'BININT' | 'BININT1' | 'BININT2' | 'LONG1' | 'BINFLOAT':
                stack.append(argument)
            case 'BINUNICODE' | 'SHORT_BINSTRING' | 'NONE':
                stack.append(argument)
            case 'NEWTRUE' | 'NEWFALSE':
                stack.append(opcode == 'NEWTRUE')
            case 'EMPTY_LIST' | 'EMPTY_DICT':
                stack.append([] if opcode == 'EMPTY_LIST' else {})
            case 'MARK':
                self.outer.append(stack)
                self.stack = []
            case 'TUPLE' | 'APPENDS' | 'SETITEMS':
                self.stack = self.outer.pop()
                self.collect(opcode, stack)
            case 'EMPTY_TUPLE' | 'TUPLE1' | 'TUPLE2' | 'TUPLE3' | 'APPEND' | 'SETITEM':
                self.collect(opcode, [stack.pop() for _ in range(_TAKES[opcode])][::-1])
            case 'GLOBAL':
                stack.append(_name(*argument.split(' ', 1)))
            case 'BINPERSID':
                stack.append(self.find_storage(stack.pop()))
            case 'REDUCE' | 'NEWOBJ' | 'BUILD':
                what, about = stack.pop(-2), stack.pop()
                self.charge(about)
                stack.append((_finish if opcode == 'BUILD' else _make)(what, about))
            case 'PROTO' | 'STOP':
                require(not self.outer, 'a mark without an end')
            case _:
                raise CheckpointError(f'refused: the opcode {opcode}')

    def collect(self, opcode: str, items: list) -> None:
        """Make a tuple of items, or put them into the list or dict on top of the stack."""
        if 'TUPLE' in opcode:
            self.stack.append(tuple(items))
        elif type(self.stack[-1]) is list:
            self.stack[-1].extend(items)
        else:
            require(type(self.stack[-1]) in (dict, OrderedDict), 'items of what has none')
            pairs = zip(items[::2], items[1::2], strict=True)
            self.stack[-1].update((_key(key), value) for key, value in pairs)

    def charge(self, about: Any) -> None:
        require(type(about) in (tuple, dict), 'something is made of nothing')
        parts = [about, *(about.values() if type(about) is dict else about)]
        sized = (str, bytes, list, tuple, dict, OrderedDict)
        self.credit -= sum(len(part) for part in parts if type(part) in sized)
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
    """Make the object for which the file wants to call a class or a function."""
    require(type(name) is Name, 'a call of what cannot be called')
    match name.path.rpartition('.')[2], arguments:
        case 'encode', (str(text), 'latin1'):
            return text.encode('latin1')
        case 'bytes', ():
            return b''
        case 'getattr', (Name(path), 'min' | 'max' | 'current' | 'mean') if path == _HISTORY:
            return None  # our HistoryBuffer has its own methods
        case 'set', ([*items],):
            return {_key(item) for item in items}
        case 'Counter', (dict(counts),):
            # Milestones of a learning rate.
            few = all(type(number) is int and 0 < number < 1000 for number in counts.values())
            require(few, 'a Counter that is not a list of milestones')
            return Counter(counts)
        case 'OrderedDict', () | ([*_],):
            return OrderedDict((_key(key), value) for pairs in arguments for key, value in pairs)
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
            require(len(data) == dtype.itemsize, 'a numpy scalar of another size than its bytes')
            return np.frombuffer(data, dtype)[0]
        case ('dtype' | '_reconstruct', (_, _, _)) | ('Namespace' | 'HistoryBuffer', ()):
            return Unfinished(name, arguments)  # its state comes as one more argument
        case 'dtype', (code, _, _, (_, order, None, None, None, -1, -1, 0)):
            require(code in _NUMPY_DTYPES and order in ('<', '>', '|'), 'an unusual numpy dtype')
            return np.dtype(code).newbyteorder(order)
        case '_reconstruct', (Name('numpy.ndarray'), _, _, (_, shape, kind, turned, bytes(data))):
            nbytes = math.prod(_shape(shape)) * kind.itemsize if isinstance(kind, np.dtype) else -1
            require(nbytes == len(data), 'a numpy array of another size than its bytes')
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
    raise CheckpointError(f'refused: it uses {name.path} as no checkpoint does')


def _finish(made: Any, state: Any) -> Any:
    """Give an object the state that the file has for it."""
    if type(made) is Unfinished:
        made.value = _make(made.name, (*made.arguments, state))
        return made.value
    require(type(made) is OrderedDict, 'attributes of what has none')
    if type(state) is dict and '_metadata' in state:
        # Modules look for the version of their weights there; nothing else is of use.
        versions = state['_metadata']
        plain = type(versions) in (dict, OrderedDict)
        plain = plain and all(type(version) is dict for version in versions.values())
        require(plain, 'weights with strange metadata')
        made._metadata = OrderedDict(versions)
    return made


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
    """Check that somebody can print, copy and compare what comes out, or refuse the file.

    Shared parts count as often as they are seen: a file of 1 kB can hold a tuple of 2**60 objects.
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
