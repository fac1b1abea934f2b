"""A small interpreter of pickles that calls nothing.

A pickle contains names of classes and functions and the arguments to call them with. Here a name
stays a name: it is compared with the few that genuine checkpoints use, its arguments are checked,
and this code creates the object. No class or function of torch, numpy, MMEngine or Python is ever
on the stack, so no file can call one, change one or set its attributes.

The alternatives are weaker: with a harmless stub for each name that ``torch.load`` does not allow,
it reads MMEngine's checkpoints, but two files of ``tests/attacks.py`` get through. Python's
``Unpickler`` with a strict ``find_class`` still calls whatever is on the stack.
"""

import io
from argparse import Namespace
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickletools import genops
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from torch import Tensor

from ptnt_mm.utils.text import printable
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError, require
from ptnt_mm.weights.reader.objects import (
    DTYPES,
    NAMES,
    STORAGES,
    Keys,
    Name,
    Storage,
    Unfinished,
    finish,
    make_object,
)

MAX_STEPS = 500_000  # opcodes, and objects in the result; a tensor takes about 30 opcodes
MAX_DEPTH = 64  # containers inside containers
MAX_SHARING = 64  # bytes of tensors for a byte of the file; heads share weights about six times

_TAKES = {'EMPTY_TUPLE': 0, 'TUPLE1': 1, 'TUPLE2': 2, 'TUPLE3': 3, 'APPEND': 1, 'SETITEM': 2}

_CONTAINERS = (list, tuple, set, dict, OrderedDict, Counter, Namespace)
_LEAVES = (
    *(str, bytes, int, float, bool, type(None), Tensor, torch.nn.Parameter, torch.dtype),
    *(torch.device, torch.Size, np.ndarray, HistoryBuffer),
)


def unpickle(stream: io.BytesIO, find_storage: Callable[[Any], Storage], size: int) -> Any:
    """Read one pickle of a file of ``size`` bytes, and leave the stream after it.

    ``find_storage`` returns the bytes of a tensor for a persistent id.

    Raises:
        CheckpointError: if it contains something that no genuine checkpoint does.
        Exception: if it is damaged; invalid opcodes can raise anything.
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
        self.credit = credit  # bytes and items for new objects; genuine files use none twice
        self.stack: list = []
        self.outer: list[list] = []
        self.memo: dict[int, Any] = {}
        self.keys = Keys()

    def step(self, opcode: str, argument: Any) -> None:
        stack = self.stack
        match opcode:
            case 'BINGET' | 'LONG_BINGET':
                value = self.memo[argument]
                finished = type(value) is Unfinished and value.value is not None
                stack.append(value.value if finished else value)
            case 'BINPUT' | 'LONG_BINPUT':
                # Python numbers objects in order; keys far apart could be chosen to collide.
                require(argument <= len(self.memo) + 256, 'objects with numbers far apart')
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
                stack.append((finish if opcode == 'BUILD' else make_object)(what, about, self.keys))
            case 'PROTO' | 'STOP':
                require(not self.outer, 'a mark without an end')
            case _:
                raise CheckpointError(f'refused: the opcode {opcode}')

    def collect(self, opcode: str, items: list) -> None:
        """Create a tuple of items, or put them into the list or dict on top of the stack."""
        if 'TUPLE' in opcode:
            self.stack.append(tuple(items))
        elif type(self.stack[-1]) is list:
            self.stack[-1].extend(items)
        else:
            require(type(self.stack[-1]) in (dict, OrderedDict), 'items of an object that has none')
            pairs = zip(items[::2], items[1::2], strict=True)
            self.stack[-1].update((self.keys.check(key), value) for key, value in pairs)

    def charge(self, about: Any) -> None:
        require(type(about) in (tuple, dict), 'an object without arguments')
        parts = [about, *(about.values() if type(about) is dict else about)]
        sized = (str, bytes, list, tuple, dict, OrderedDict)
        self.credit -= sum(len(part) for part in parts if type(part) in sized)
        require(self.credit >= 0, 'a long text or list that is used many times')
        for part in parts:
            if isinstance(part, dict):
                self.keys.check_all(part)  # copying it hashes its keys again


def _name(module: str, name: str) -> Name | torch.dtype:
    # Protocol 2 uses Python 2's name.
    path = f'{"builtins" if module == "__builtin__" else module}.{name}'
    if path in DTYPES:
        return DTYPES[path]
    if path not in NAMES and path not in STORAGES:
        raise CheckpointError(
            f'refused, it asks for {printable(path, 80)!r}, which is not on the list of harmless '
            'names. Ask its author for the weights as plain tensors'
        )
    return Name(path)


def _check(value: Any, nbytes: int) -> None:
    """Refuse a result that would take too long to print, copy or compare.

    Shared parts count each time they occur: a file of 1 kB can contain a tuple of 2**60 objects.
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
