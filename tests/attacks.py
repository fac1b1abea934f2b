"""Checkpoint files that try to run a command, written by hand, for the tests of our readers.

Each attack leaves a canary file if any of it is run. The pickles are made opcode by opcode: nothing
here needs the attacked classes, and nothing is run when a file is written.
"""

import argparse
import builtins
import copy
import copyreg
import functools
import io
import pickle
import struct
import types
import warnings
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
from mmengine.logging import HistoryBuffer

PROTOCOL_2 = b'\x80\x02'


class Raw:
    """Opcodes of a pickle, built by calls that read like the program they encode."""

    def __init__(self, code: bytes):
        self.code = code

    def reduce(self, *args):
        """Call this object with arguments."""
        return Raw(self.code + pack(args) + pickle.REDUCE)

    def new(self, *args):
        """Create an instance without calling its constructor."""
        return Raw(self.code + pack(args) + pickle.NEWOBJ)

    def build(self, state):
        """Set the state of this object."""
        return Raw(self.code + pack(state) + pickle.BUILD)


def glob(module: str, name: str) -> Raw:
    """The opcode for a name."""
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


STORED_BYTES = 1024


def entries(value) -> list[tuple[str, bytes]]:
    """The content of torch's archives: a pickle, and the bytes of one storage."""
    return [
        ('archive/data.pkl', pickled(value)),
        ('archive/byteorder', b'little'),
        ('archive/data/0', bytes(STORED_BYTES)),
        ('archive/version', b'3\n'),
    ]


def write_entries(path: Path, parts: list[tuple[str, bytes]], compression: int = 0) -> Path:
    with (
        warnings.catch_warnings(action='ignore'),
        zipfile.ZipFile(path, 'w', compression) as archive,
    ):
        for name, content in parts:
            archive.writestr(name, content)
    return path


def write_zip(path: Path, value) -> Path:
    """Write a pickle as today's torch does, with one storage."""
    return write_entries(path, entries(value))


def write_legacy(path: Path, value) -> Path:
    """Write a pickle as torch did before 1.6, without tensors."""
    head = io.BytesIO()
    for part in (0x1950A86A20F9469CFC6C, 1001, dict(little_endian=True)):
        pickle.dump(part, head, protocol=2)
    content = pickled(value)
    keys = ['0'] * (pickle.BINPERSID in content)
    storages = struct.pack('<q', STORED_BYTES // 4) + bytes(STORED_BYTES)
    tail = pickle.dumps(keys, protocol=2) + storages * len(keys)
    path.write_bytes(head.getvalue() + content + tail)
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
    """An object dtype that claims to contain no objects."""
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


COUNTER = glob('collections', 'Counter')
ORDERED = glob('collections', 'OrderedDict')
TENSOR = glob('torch', 'Tensor')
REBUILD = glob('torch._utils', '_rebuild_tensor_v2')


def storage(
    kind: str = 'FloatStorage', key: str = '0', numel: int = 256, place: str = 'cpu'
) -> Raw:
    return Raw(pack(('storage', glob('torch', kind), key, place, numel)) + pickle.BINPERSID)


def tensor(size: tuple, stride: tuple, offset: int = 0, of: Raw | None = None) -> Raw:
    return REBUILD.reduce(of or storage(), offset, size, stride, False, ORDERED.reduce())


def shared(levels: int) -> Raw:
    """A tuple of two equal tuples, and so on: small in a file, endless when printed."""
    return Raw(pack(()) + (pickle.BINPUT + b'\x09' + pickle.BINGET + b'\x09\x86') * levels)


@functools.cache
def colliding_numbers(count: int = 21_000, slots: int = 2**15) -> tuple[int, ...]:
    """Integers for which filling a dict of ``count`` keys takes about count**2 / 8 steps.

    Half of them fill a part of the dict's table, in the order in which Python looks for a free slot
    (``slot = 5 * slot + 1``). The others lead into this part wherever the search begins.
    """
    chain, slot = [], 0
    for _ in range(count // 2):
        chain.append(slot)
        slot = (5 * slot + 1) % slots
    is_taken = np.zeros(slots, dtype=bool)
    is_taken[chain] = True
    numbers = np.arange(slots, slots * 2**9)
    slot, rest = numbers % slots, numbers
    while len(numbers):
        kept = is_taken[slot]
        numbers, slot, rest = numbers[kept], slot[kept], rest[kept]
        if not rest.any():
            break
        rest = rest >> 5
        slot = (5 * slot + rest + 1) % slots
    return (*chain, *numbers[: count - len(chain)].tolist())


def _dict_of(keys: Iterable[Raw], value: bytes = pickle.NONE) -> Raw:
    items = b''.join(key.code + value for key in keys)
    return Raw(pickle.EMPTY_DICT + pickle.MARK + items + pickle.SETITEMS)


def _colliding() -> list[Raw]:
    return [Raw(pack(number)) for number in colliding_numbers()]


REFUSED: dict[str, Callable[[Path], Raw]] = dict(
    posix_system=lambda canary: glob('posix', 'system').reduce(f'touch {canary}'),
    builtin_eval=lambda canary: glob('__builtin__', 'eval').reduce(f"open({str(canary)!r}, 'w')"),
    getattr_of_a_method=lambda _: GETATTR.reduce(GETATTR.reduce(HISTORY, 'mean'), '__globals__'),
    getattr_of_the_constructor=lambda _: GETATTR.reduce(HISTORY, '__init__'),
    getattr_of_another_class=lambda _: GETATTR.reduce(glob('collections', 'OrderedDict'), 'mean'),
    getattr_of_a_dict=lambda _: GETATTR.reduce({}, '__class__'),
    # A method from getattr is also something that a file must not call.
    called_method=lambda _: GETATTR.reduce(HISTORY, 'mean').reduce('x'),
    object_dtype=lambda _: array(dtype('O'), (1,), b'\x01' * 8),
    forged_object_array=lambda _: array(forged_dtype(), (1,), b'\x41' * 8),
    forged_object_scalar=lambda _: SCALAR.reduce(forged_dtype(), b'\x41' * 8),
    object_scalar=lambda canary: SCALAR.reduce(dtype('O'), os_system(canary)),
    dtype_by_newobj=lambda _: glob('numpy', 'dtype').new('O', False, True),
    structured_dtype=lambda _: glob('numpy', 'dtype').reduce([('x', 'O')], False, True),
    # A view over memory of the file's choice.
    array_constructor=lambda _: NDARRAY.reduce((4,), dtype('f8'), b'\x00' * 8, 0, (-8,)),
    array_by_newobj=lambda _: NDARRAY.new((1 << 20,)),
    too_few_bytes=lambda _: array(plain_dtype('f8'), (1 << 20,), b'\x00' * 8),
    negative_shape=lambda _: array(plain_dtype('f8'), (-1, -1), b'\x00' * 8),
    too_short_scalar=lambda _: SCALAR.reduce(plain_dtype('f8'), b'\x00'),
    reconstruct_other=lambda _: RECONSTRUCT.reduce(HISTORY, (0,), b'b'),
    called_history=lambda _: HISTORY.reduce([1], [1]),
    history_of_lists=lambda _: HISTORY.new().build(
        dict(max_length=1, _log_history=[1], _count_history=[1])
    ),
    history_built_twice=lambda _: history({}).build({'statistics_methods': {}}),
    endless_bytes=lambda _: glob('__builtin__', 'bytes').reduce(1 << 30),
    # A Counter with attributes, a fake self for HistoryBuffer.current, which returns anything.
    counter_as_self=lambda _: COUNTER.reduce({}).build(
        {'_log_history': [REBUILD], '_count_history': [1]}
    ),
    # A module of the file's choice, which pickle imports when something is saved.
    attributes_of_a_function=lambda _: REBUILD.build((None, {'__module__': 'numpy.f2py.__main__'})),
    attributes_of_a_history=lambda _: HISTORY.build((None, {'_statistics_methods': {}})),
    attributes_of_a_dtype=lambda _: glob('numpy', 'dtype').build((None, {'newbyteorder': 1})),
    attributes_of_a_tensor=lambda _: tensor((1,), (1,)).build({'__class__': HISTORY}),
    called_tensor=lambda _: tensor((1,), (1,)).reduce(),
    called_storage_class=lambda _: glob('torch', 'FloatStorage').reduce(1 << 30),
    giant_of_stride_zero=lambda _: tensor((1 << 30, 1 << 30), (0, 0)),
    tensor_beyond_its_storage=lambda _: tensor((2,), (256,)),
    tensor_before_its_storage=lambda _: tensor((2,), (1,), offset=-1),
    tensor_that_goes_backwards=lambda _: tensor((2,), (-1,), offset=1),
    # The product of its sides takes forever to compute.
    tensor_of_many_sides=lambda _: tensor((1 << 30,) * 100_000, (0,) * 100_000),
    storage_of_another_size=lambda _: tensor((1,), (1,), of=storage(numel=1 << 30)),
    storage_that_is_not_there=lambda _: tensor(
        (1,), (1,), of=storage(key='../data.pkl', numel=1 << 30)
    ),
    storage_in_a_strange_place=lambda _: Raw(
        pack(('module', glob('torch', 'FloatStorage'), '0', 'cpu', 256)) + pickle.BINPERSID
    ),
    storage_as_data=lambda _: storage(),
    name_as_data=lambda _: REBUILD,
    shared_for_ever=lambda _: shared(60),
    # An error message that shows the object would never end.
    shared_for_ever_in_a_call=lambda _: ORDERED.reduce(shared(60)),
    shared_for_ever_as_state=lambda _: dtype('f8').build(
        (3, '<', shared(60), None, None, -1, -1, 0)
    ),
    # Its hash would take forever to compute.
    shared_for_ever_as_a_key=lambda _: Raw(
        pack({}) + shared(60).code + pickle.NONE + pickle.SETITEM
    ),
    inside_itself=lambda _: Raw(
        pickle.EMPTY_LIST + pickle.BINPUT + b'\x09' + pickle.BINGET + b'\x09' + pickle.APPEND
    ),
    too_deep=lambda _: Raw(pickle.EMPTY_TUPLE + pickle.TUPLE1 * 100_000),
    too_many_steps=lambda _: Raw(pickle.EMPTY_LIST + (pickle.NONE + pickle.APPEND) * 500_000),
    colliding_keys=lambda _: _dict_of(_colliding()),
    colliding_items_of_a_set=lambda _: glob('builtins', 'set').reduce(_colliding()),
    colliding_pairs=lambda _: ORDERED.reduce([Raw(key.code + b'N\x86') for key in _colliding()]),
    colliding_milestones=lambda _: COUNTER.reduce(_dict_of(_colliding(), value=b'K\x01')),
    colliding_settings=lambda _: glob('argparse', 'Namespace').new().build(_dict_of(_colliding())),
    colliding_versions=lambda _: ORDERED.reduce().build({'_metadata': _dict_of(_colliding())}),
    empty_tensor_of_overflowing_size=lambda _: tensor((1 << 30, 1 << 30, 1 << 30, 0), (0, 0, 0, 0)),
    endless_milestones=lambda _: COUNTER.reduce({1: 1 << 30}),
    command_line_of_another_class=lambda _: (
        glob('argparse', 'Namespace').new().build({'__class__': 'x'})
    ),
    strange_versions=lambda _: ORDERED.reduce().build({'_metadata': {'': [1]}}),
    half_made=lambda _: RECONSTRUCT.reduce(NDARRAY, (0,), b'b'),
    # A number that refers to a class in a table of the process.
    registered_extension=lambda _: Raw(pickle.EXT1 + b'\x01'),
    old_instance=lambda canary: Raw(
        pickle.MARK + pack(f'touch {canary}') + pickle.INST + b'os\nsystem\n'
    ),
    old_object=lambda _: Raw(pickle.MARK + glob('torch', 'FloatStorage').code + pickle.OBJ),
    # Pairs whose keys would take forever to hash.
    versions_of_shared_keys=lambda _: ORDERED.reduce().build({'_metadata': [(shared(60), {})]}),
    # A tensor of 1 kB as a pair: iterating over its 2**30 rows would create a tensor for each.
    pairs_of_endless_rows=lambda _: ORDERED.reduce([tensor((1 << 30,), (0,))]),
)
"""Attacks on the reader, by name: each is refused while the file is read."""


def refused(attack: Callable[[Path], Raw]) -> Callable[[Path], Raw]:
    """Add a function to ``REFUSED``."""
    REFUSED[attack.__name__] = attack
    return attack


@refused
def os_system(canary: Path) -> Raw:
    return glob('os', 'system').reduce(f'touch {canary}')


@refused
def climbing_getattr(canary: Path) -> Raw:
    """HistoryBuffer.__init__.__globals__, which contains the builtins."""
    init = GETATTR.reduce(HISTORY, '__init__')
    return GETATTR.reduce(init, '__globals__')


@refused
def forged_dtype_state(canary: Path) -> Raw:
    """A plain dtype that is given fields, a size and flags."""
    fields = {'x': (dtype('f8'), 0)}
    return dtype('f8').build((3, '|', None, ('x',), fields, 64, 8, 63))


@refused
def rebuilt_type(canary: Path) -> Raw:
    """Sets attributes of torch.Tensor for the whole process."""
    rebuild = glob('torch._tensor', '_rebuild_from_type_v2')
    return rebuild.reduce(REBUILD, TENSOR, (storage(), 0, (1,), (1,), False, {}), {'mean': 1})


@refused
def tensors_sharing_for_ever(canary: Path) -> Raw:
    """A thousand tensors on one storage: small in the file, and each is written by convert."""
    one = memo(tensor((256,), (1,)), 5)
    return Raw(pack([one]) + (pickle.BINGET + b'\x05' + pickle.APPEND) * 1000)


@refused
def a_long_number_as_key(canary: Path) -> Raw:
    number = (2**61 - 1) * 2**64
    return Raw(pack({}) + pickle.LONG1 + b'\x10' + number.to_bytes(16, 'little') + b'Ns')


@refused
def colliding_keys_one_by_one(canary: Path) -> Raw:
    items = b''.join(key.code + pickle.NONE + pickle.SETITEM for key in _colliding())
    return Raw(pickle.EMPTY_DICT + items)


@refused
def colliding_floats(canary: Path) -> Raw:
    floats = (struct.pack('>d', number) for number in colliding_numbers())
    return _dict_of(Raw(pickle.BINFLOAT + number) for number in floats)


@refused
def colliding_pairs_many_times(canary: Path) -> Raw:
    """A short list of pairs becomes a dict again and again; the size of the text allows it."""
    pairs = [Raw(pack((number, None))) for number in colliding_numbers(5_400, 2**13)]
    first = memo(ORDERED, 1).code + memo(Raw(pack((pairs,))), 2).code + pickle.REDUCE
    again = b'h\x01h\x02R' + pickle.APPEND
    return Raw(pack(['x' * 4_000_000, Raw(first)]) + again * 1000)


@refused
def colliding_numbers_of_objects(canary: Path) -> Raw:
    puts = (pickle.LONG_BINPUT + struct.pack('<I', number) for number in colliding_numbers())
    return Raw(pickle.NONE + b''.join(puts))


@refused
def text_used_many_times(canary: Path) -> Raw:
    """Each use would be a copy."""
    text = Raw(pickle.BINUNICODE + struct.pack('<I', 100_000) + b'x' * 100_000)
    encode = memo(glob('_codecs', 'encode'), 1).code
    arguments = memo(Raw(pack((text, 'latin1'))), 2).code
    again = b'h\x01h\x02R' + pickle.APPEND
    return Raw(pickle.EMPTY_LIST + encode + arguments + b'R' + pickle.APPEND + again * 1000)


@refused
def half_made_and_used(canary: Path) -> Raw:
    made = memo(RECONSTRUCT.reduce(NDARRAY, (0,), b'b'), 7)
    return made.build((1, recall(7), plain_dtype('f8'), False, b''))


@refused
def name_from_the_stack(canary: Path) -> Raw:
    name = Raw(pack('os') + pack('system') + pickle.STACK_GLOBAL)
    return name.reduce(f'touch {canary}')


MAIN = ('os_system', 'inside_itself')
"""Attacks that are tried in every place that reads files: a call, and an object that is refused
when it is complete."""

SLOW = (
    *('too_many_steps', 'too_deep', 'shared_for_ever', 'tensor_of_many_sides', 'colliding_keys'),
    *('colliding_keys_one_by_one', 'colliding_floats', 'colliding_pairs_many_times'),
    *('colliding_pairs', 'colliding_milestones', 'colliding_settings', 'colliding_versions'),
    'colliding_numbers_of_objects',
)
"""Attacks that are refused after a while."""


def compressed(path: Path) -> Path:
    """A zip bomb: 50 kB that become 50 MB."""
    return write_entries(path, [*entries({}), ('archive/data/1', bytes(50 << 20))], 8)


def two_of_one_name(path: Path) -> Path:
    """Two entries of one name: readers disagree which one counts."""
    return write_entries(path, [*entries({'x': 1}), ('archive/data.pkl', pickled({'x': 2}))])


def no_pickle_at_its_root(path: Path) -> Path:
    return write_entries(path, [('readme', b''), *entries({})])


def storages_on_one_place(path: Path) -> Path:
    """Entries whose bytes overlap: together they are larger than the file."""
    many = [tensor((250_000,), (1,), of=storage(key=str(i), numel=250_000)) for i in range(9)]
    parts = dict(entries(many)) | {'archive/data/0': bytes(1_000_000)}
    write_entries(path, list(parts.items()))
    with zipfile.ZipFile(path, 'a') as archive:
        first = archive.getinfo('archive/data/0')
        for i in range(1, 9):
            again = copy.copy(first)
            again.filename = f'archive/data/{i}'
            archive.filelist.append(again)
        archive._didModify = True
    return path


def huge_table_of_contents(path: Path) -> Path:
    write_zip(path, {})
    content = path.read_bytes()
    end = content.rindex(b'PK\x05\x06')
    size = 17 << 20
    end_record = content[end : end + 12] + struct.pack('<II', size, end) + b'\0\0'
    path.write_bytes(content[:end] + bytes(size) + end_record)
    return path


def legacy_of_another_size(path: Path) -> Path:
    """The number of elements before the bytes of a storage is not the one in the pickle."""
    write_legacy(path, {'x': tensor((1,), (1,))})
    content = path.read_bytes()
    at = len(content) - STORED_BYTES - 8
    path.write_bytes(content[:at] + struct.pack('<q', -1) + content[at + 8 :])
    return path


def legacy_without_its_bytes(path: Path) -> Path:
    write_legacy(path, {'x': tensor((1,), (1,))})
    path.write_bytes(path.read_bytes()[:-1])
    return path


def memory_of_the_process(path: Path) -> Path:
    """A tensor that is not on the list of stored ones: its bytes would be whatever was there."""
    place = ('storage', glob('torch', 'FloatStorage'), '0', 'cpu', 256, None)
    write_legacy(path, {'x': tensor((256,), (1,), of=Raw(pack(place) + pickle.BINPERSID))})
    listed, empty = (pickle.dumps(keys, protocol=2) for keys in (['0'], []))
    path.write_bytes(path.read_bytes().replace(listed, empty))
    return path


ARCHIVES: tuple[Callable[[Path], Path], ...] = (
    compressed,
    two_of_one_name,
    no_pickle_at_its_root,
    storages_on_one_place,
    huge_table_of_contents,
    legacy_of_another_size,
    legacy_without_its_bytes,
    memory_of_the_process,
)
"""Attacks by the file around the pickle: each is refused or found to be damaged."""

ESCAPES = '\x1b[2J\x00\r\x07\u202e'
"""Text that clears a terminal, rings its bell or reverses its text."""


def snapshot() -> dict:
    """Attributes that a crafted file may try to change in this process."""
    HistoryBuffer()  # fills the class's table of its own methods
    owners = [builtins, copyreg, torch, np, torch._utils, torch._tensor, torch.Tensor, np.dtype]
    owners += [np.ndarray, OrderedDict, Counter, argparse.Namespace, HistoryBuffer]
    owners += [torch._utils._rebuild_tensor_v2, torch.nn.Parameter, torch.storage.UntypedStorage]
    attributes = ((str(owner), *item) for owner in owners for item in vars(owner).items())
    # Libraries import parts of themselves late.
    kept = {(o, k): id(v) for o, k, v in attributes if not isinstance(v, types.ModuleType)}
    kept |= {('methods', *item): 0 for item in HistoryBuffer._statistics_methods.items()}
    function = torch._utils._rebuild_tensor_v2
    return kept | {'function': (function.__module__, function.__code__, function.__defaults__)}


def command_config(canary: Path) -> str:
    """Config text that runs a command if it is executed as Python."""
    return f'import os\nos.system("touch {canary}")\nmodel = dict(type="Anything")\n'


def registry_config(canary: Path) -> str:
    """Config text without a call, for a registry that resolves names."""
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
    """Values that MMEngine logs: buffers, numbers and arrays of numpy."""
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
