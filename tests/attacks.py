"""Checkpoint files that try to run a command, written by hand, for the tests of our readers.

Each attack leaves a canary file if any of it is run. The pickles are made opcode by opcode: nothing
here needs the attacked classes, and nothing is run when a file is written.
"""

import argparse
import io
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from mmengine.logging import HistoryBuffer

PROTOCOL_2 = b'\x80\x02'


class Raw:
    """Opcodes of a pickle, built by calls that read like the program they make."""

    def __init__(self, code: bytes):
        self.code = code

    def reduce(self, *args):
        """Call this with args."""
        return Raw(self.code + pack(args) + pickle.REDUCE)

    def new(self, *args):
        """Make an instance of this without its constructor."""
        return Raw(self.code + pack(args) + pickle.NEWOBJ)

    def build(self, state):
        """Set this one's state."""
        return Raw(self.code + pack(state) + pickle.BUILD)


def glob(module: str, name: str) -> Raw:
    """The opcode that names something."""
    return Raw(pickle.GLOBAL + f'{module}\n{name}\n'.encode())


def memo(value: Raw, index: int) -> Raw:
    """Keep a value; ``recall(index)`` gives the same object again."""
    return Raw(value.code + pickle.BINPUT + bytes([index]))


def recall(index: int) -> Raw:
    return Raw(pickle.BINGET + bytes([index]))


def pack(value) -> bytes:
    """Opcodes of plain values with ``Raw`` parts anywhere inside."""
    if isinstance(value, Raw):
        return value.code
    if isinstance(value, bytes):
        return glob('_codecs', 'encode').reduce(value.decode('latin1'), 'latin1').code
    if isinstance(value, tuple):
        return pickle.MARK + b''.join(map(pack, value)) + pickle.TUPLE
    if isinstance(value, list):
        return pickle.EMPTY_LIST + pickle.MARK + b''.join(map(pack, value)) + pickle.APPENDS
    if isinstance(value, dict):
        items = b''.join(pack(key) + pack(item) for key, item in value.items())
        return pickle.EMPTY_DICT + pickle.MARK + items + pickle.SETITEMS
    if isinstance(value, bool) or value is None:
        return {True: pickle.NEWTRUE, False: pickle.NEWFALSE, None: pickle.NONE}[value]
    if isinstance(value, int):
        return pickle.BININT + struct.pack('<i', value)
    text = value.encode()
    return pickle.BINUNICODE + struct.pack('<I', len(text)) + text


def pickled(value) -> bytes:
    """A whole pickle."""
    return PROTOCOL_2 + pack(value) + pickle.STOP


def write_zip(path: Path, value) -> Path:
    """Write a pickle as today's torch does, without tensors."""
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('archive/data.pkl', pickled(value))
        archive.writestr('archive/version', '3\n')
        archive.writestr('archive/byteorder', 'little')
    return path


def write_legacy(path: Path, value) -> Path:
    """Write a pickle as torch did before 1.6, without tensors."""
    head = io.BytesIO()
    for part in (0x1950A86A20F9469CFC6C, 1001, dict(little_endian=True)):
        pickle.dump(part, head, protocol=2)
    keys = pickle.dumps([], protocol=2)
    path.write_bytes(head.getvalue() + pickled(value) + keys)
    return path


HISTORY = glob('mmengine.logging.history_buffer', 'HistoryBuffer')
GETATTR = glob('builtins', 'getattr')
NDARRAY = glob('numpy', 'ndarray')
RECONSTRUCT = glob('numpy.core.multiarray', '_reconstruct')
SCALAR = glob('numpy.core.multiarray', 'scalar')


def dtype(code: str) -> Raw:
    return glob('numpy', 'dtype').reduce(code, False, True)


def plain_dtype(code: str) -> Raw:
    return dtype(code).build((3, '<', None, None, None, -1, -1, 0))


def forged_dtype() -> Raw:
    """An object dtype which says that it holds no objects."""
    return dtype('O').build((3, '|', None, None, None, -1, -1, 0))


def array(kind: Raw, shape: tuple, data: bytes) -> Raw:
    empty = RECONSTRUCT.reduce(NDARRAY, (0,), b'b')
    return empty.build((1, shape, kind, False, data))


def history(methods: dict) -> Raw:
    """A HistoryBuffer of one number, with a table of methods."""
    state = dict(
        max_length=10,
        _log_history=array(plain_dtype('f8'), (1,), struct.pack('<d', 1.5)),
        _count_history=array(plain_dtype('i8'), (1,), struct.pack('<q', 1)),
        statistics_methods=methods,
    )
    return HISTORY.new().build(state)


def os_system(canary: Path) -> Raw:
    return glob('os', 'system').reduce(f'touch {canary}')


def posix_system(canary: Path) -> Raw:
    return glob('posix', 'system').reduce(f'touch {canary}')


def builtin_eval(canary: Path) -> Raw:
    return glob('__builtin__', 'eval').reduce(f"open({str(canary)!r}, 'w')")


def path_write(canary: Path) -> Raw:
    touch = GETATTR.reduce(glob('pathlib', 'Path').reduce(str(canary)), 'touch')
    return touch.reduce()


def climbing_getattr(canary: Path) -> Raw:
    """HistoryBuffer.__init__.__globals__, which holds the builtins."""
    init = GETATTR.reduce(HISTORY, '__init__')
    return GETATTR.reduce(init, '__globals__')


def getattr_of_a_method(canary: Path) -> Raw:
    return GETATTR.reduce(GETATTR.reduce(HISTORY, 'mean'), '__globals__')


def getattr_of_the_constructor(canary: Path) -> Raw:
    return GETATTR.reduce(HISTORY, '__init__')


def getattr_of_another_class(canary: Path) -> Raw:
    return GETATTR.reduce(glob('collections', 'OrderedDict'), 'mean')


def getattr_of_a_dict(canary: Path) -> Raw:
    return GETATTR.reduce({}, '__class__')


def called_method(canary: Path) -> Raw:
    """A method that getattr gave is still nothing that a file may call."""
    return GETATTR.reduce(HISTORY, 'mean').reduce('x')


def object_dtype(canary: Path) -> Raw:
    return array(dtype('O'), (1,), b'\x01' * 8)


def forged_object_array(canary: Path) -> Raw:
    return array(forged_dtype(), (1,), b'\x41' * 8)


def forged_object_scalar(canary: Path) -> Raw:
    return SCALAR.reduce(forged_dtype(), b'\x41' * 8)


def object_scalar(canary: Path) -> Raw:
    return SCALAR.reduce(dtype('O'), os_system(canary))


def dtype_by_newobj(canary: Path) -> Raw:
    return glob('numpy', 'dtype').new('O', False, True)


def forged_dtype_state(canary: Path) -> Raw:
    """A plain dtype that is given fields, a size and flags."""
    fields = {'x': (dtype('f8'), 0)}
    return dtype('f8').build((3, '|', None, ('x',), fields, 64, 8, 63))


def structured_dtype(canary: Path) -> Raw:
    return glob('numpy', 'dtype').reduce([('x', 'O')], False, True)


def concrete_dtype_class(canary: Path) -> Raw:
    return glob('numpy.dtypes', 'ObjectDType').reduce()


def array_constructor(canary: Path) -> Raw:
    """A view over memory of the file's choice."""
    return NDARRAY.reduce((4,), dtype('f8'), b'\x00' * 8, 0, (-8,))


def array_by_newobj(canary: Path) -> Raw:
    return NDARRAY.new((1 << 20,))


def second_array_state(canary: Path) -> Raw:
    """Frees the numbers under a tensor that shares them."""
    first = memo(array(plain_dtype('f8'), (64,), b'\x00' * 512), 7)
    shared = glob('torch._utils', '_rebuild_device_tensor_from_numpy').reduce(
        first, glob('torch', 'float64'), 'cpu', False
    )
    again = recall(7).build((1, (1,), plain_dtype('f8'), False, b'\x00' * 8))
    return Raw(pack([shared, again]))


def state_of_a_shared_array(canary: Path) -> Raw:
    """Gives an array its state when a tensor shares it already."""
    first = memo(RECONSTRUCT.reduce(NDARRAY, (0,), b'b'), 7)
    shared = glob('torch._utils', '_rebuild_device_tensor_from_numpy').reduce(
        first, glob('torch', 'uint8'), 'cpu', False
    )
    return Raw(pack([shared, recall(7).build((1, (1,), plain_dtype('f8'), False, b'\x00' * 8))]))


def too_few_bytes(canary: Path) -> Raw:
    return array(plain_dtype('f8'), (1 << 20,), b'\x00' * 8)


def negative_shape(canary: Path) -> Raw:
    return array(plain_dtype('f8'), (-1, -1), b'\x00' * 8)


def too_short_scalar(canary: Path) -> Raw:
    return SCALAR.reduce(plain_dtype('f8'), b'\x00')


def reconstruct_other(canary: Path) -> Raw:
    return RECONSTRUCT.reduce(HISTORY, (0,), b'b')


def called_history(canary: Path) -> Raw:
    return HISTORY.reduce([1], [1])


def history_of_lists(canary: Path) -> Raw:
    return HISTORY.new().build(dict(max_length=1, _log_history=[1], _count_history=[1]))


def history_built_twice(canary: Path) -> Raw:
    return history({}).build({'statistics_methods': {}})


def endless_bytes(canary: Path) -> Raw:
    return glob('__builtin__', 'bytes').reduce(1 << 30)


REFUSED: tuple[Callable[[Path], Raw], ...] = (
    os_system,
    posix_system,
    builtin_eval,
    path_write,
    climbing_getattr,
    getattr_of_a_method,
    getattr_of_the_constructor,
    getattr_of_another_class,
    getattr_of_a_dict,
    called_method,
    object_dtype,
    forged_object_array,
    forged_object_scalar,
    object_scalar,
    dtype_by_newobj,
    forged_dtype_state,
    structured_dtype,
    concrete_dtype_class,
    array_constructor,
    array_by_newobj,
    second_array_state,
    state_of_a_shared_array,
    too_few_bytes,
    negative_shape,
    too_short_scalar,
    reconstruct_other,
    called_history,
    history_of_lists,
    history_built_twice,
    endless_bytes,
)
"""Attacks on the reader: each is refused while the file is read."""


def command_config(canary: Path) -> str:
    """Config text that runs a command when it is taken for Python."""
    return f'import os\nos.system("touch {canary}")\nmodel = dict(type="Anything")\n'


def registry_config(canary: Path) -> str:
    """Config text without a call in it, for a registry that resolves names."""
    return f'model = dict(type="os.system", command="touch {canary}")\n'


def store_config(checkpoint: dict, text: str) -> dict:
    """Put a text wherever MMEngine looks for the config of a checkpoint."""
    checkpoint = dict(checkpoint)
    checkpoint['meta'] = dict(checkpoint.get('meta', {}), cfg=text, config=text)
    hub = dict(checkpoint.get('message_hub', {}))
    hub['runtime_info'] = dict(hub.get('runtime_info', {}), cfg=text)
    checkpoint['message_hub'] = hub
    return checkpoint


def write_authors_checkpoint(path: Path, state_dict: dict, averaged: dict) -> Path:
    """Write a file in the authors' training format, as timm's CheckpointSaver does."""
    checkpoint = dict(
        epoch=299,
        arch='ptnt_s_patch16_256',
        state_dict=state_dict,
        state_dict_ema=averaged,
        optimizer=dict(state={0: dict(exp_avg=torch.zeros(3))}, param_groups=[dict(lr=1e-3)]),
        args=argparse.Namespace(model='ptnt_s', lr=1e-3, betas=(0.9, 0.999), data='imagenet'),
        version=2,
        metric=82.0,
    )
    torch.save(checkpoint, path)
    return path


def honest_log() -> dict:
    """What MMEngine logs: buffers, numbers and arrays of numpy."""
    buffer = HistoryBuffer([0.5, 0.25], [1, 2])
    buffer.update(3.0, 4)
    return dict(
        log_scalars={'train/loss': buffer, 'train/empty': HistoryBuffer()},
        runtime_info=dict(
            best_score=np.float64(0.58),
            iter=np.int64(12),
            flags=np.array([True, False]),
            half=np.float16(0.5),
            table=np.arange(6, dtype=np.float32).reshape(2, 3).T,
            foreign=np.arange(3, dtype='>i4'),
        ),
        resumed_keys={'train/loss': True},
    )
