"""A fuzzer for the reader of checkpoints: pickles of strange steps, and archives with damage.

Nothing outside may change, nothing may be raised but a CheckpointError, and no file may take longer
than 5 s or more memory than twice its size and 1 GB. A few hundred files are part of the tests; the
whole thing:

python tests/weights/reader/fuzz_reader.py --minutes 20
"""

import argparse
import copy
import io
import resource
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path
from pickletools import genops

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2]))

import attacks

from ptnt_mm.weights.reader import pickle_reader
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.read import read_checkpoint

SECONDS = 5.0
MEMORY = 2**30

_EVIL = ('os.system', 'builtins.eval', 'torch.Tensor', 'torch._tensor._rebuild_from_type_v2')
_NAMES = sorted({*pickle_reader.NAMES, *pickle_reader.STORAGES, *pickle_reader.DTYPES, *_EVIL})
_ATTRIBUTES = ('__class__', '__dict__', '__module__', '_metadata', 'current', '_log_history', 'w')

names = st.sampled_from(_NAMES).map(lambda path: attacks.glob(*path.rsplit('.', 1)))
texts = st.sampled_from(('latin1', 'f8', 'b', '<', 'cpu', 'min', *_ATTRIBUTES)) | st.text(
    max_size=9
)
numbers = st.integers(-3, 300) | st.integers(-(2**31), 2**31 - 1)
leaves = st.one_of(
    names,
    texts,
    numbers,
    st.booleans(),
    st.none(),
    st.binary(max_size=16),
    st.integers(0, 5).map(attacks.recall),
    st.sampled_from([attacks.storage(), attacks.dtype('f8'), attacks.plain_dtype('i8')]),
    st.builds(lambda number: attacks.storage(numel=number), numbers),
    st.sampled_from(sorted(attacks.REFUSED.keys() - set(attacks.SLOW))).map(
        lambda attack: attacks.REFUSED[attack](Path('/nowhere/canary'))
    ),
)


def larger(parts):
    """Combinations of parts: containers, calls, instances, states, numbered objects."""
    tuples = st.lists(parts, max_size=7).map(tuple)
    keyed = st.dictionaries(texts, parts, max_size=4)
    raw = parts.map(lambda part: attacks.Raw(attacks.pack(part)))
    shapes = st.lists(numbers, max_size=3).map(tuple)
    return st.one_of(
        tuples,
        keyed,
        st.lists(parts, max_size=4),
        st.builds(lambda name, about: name.reduce(*about), names | raw, tuples),
        st.builds(lambda name, about: name.new(*about), names | raw, tuples),
        st.builds(lambda made, state: made.build(state), raw, parts | keyed),
        st.builds(attacks.memo, raw, st.integers(0, 5)),
        st.builds(attacks.tensor, shapes, shapes, numbers),
        st.builds(attacks.array, raw, shapes, st.binary(max_size=64)),
    )


pickles = st.recursive(leaves, larger, max_leaves=12)


def honest(zipped: bool) -> bytes:
    """A checkpoint with every kind of valid content."""
    content = dict(
        state_dict=torch.nn.BatchNorm2d(2).state_dict(),
        message_hub=attacks.honest_log(),
        args=argparse.Namespace(lr=0.1),
        scheduler=Counter([1]),
        half=torch.ones(2).bfloat16(),
        place=torch.device('cpu'),
        size=torch.Size((1, 2)),
        some={1},
    )
    buffer = io.BytesIO()
    torch.save(content, buffer, _use_new_zipfile_serialization=zipped)
    return buffer.getvalue()


HONEST = {zipped: honest(zipped) for zipped in (True, False)}


DATA = zipfile.ZipFile(io.BytesIO(HONEST[True])).read('archive/data.pkl')
STARTS = [at for _, _, at in genops(DATA)] + [len(DATA)]
STEPS = [DATA[a:b] for a, b in zip(STARTS, STARTS[1:], strict=False)]


@st.composite
def moved_steps(draw) -> bytes:
    """A valid pickle with steps that are removed, repeated, moved or taken from elsewhere."""
    steps = list(STEPS)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(1, len(steps) - 2))
        length = draw(st.integers(0, 8))
        other = draw(st.integers(1, len(STEPS) - 2))
        new = draw(st.sampled_from(['none', 'honest', 'opcode', 'made']))
        steps[at : at + length] = {
            'none': lambda: [],
            'honest': lambda other=other: STEPS[other : other + 5],
            'opcode': lambda: [bytes([draw(st.sampled_from(b'Rb\x81.0(tuesa}])Q12\x85\x93'))])],
            'made': lambda: [attacks.pack(draw(pickles))],
        }[new]()
    return b''.join(steps)


@st.composite
def damaged(draw) -> bytes:
    """A valid file with bytes that are changed, removed, repeated or cut off."""
    content = bytearray(HONEST[draw(st.booleans())])
    for _ in range(draw(st.integers(1, 8))):
        at = draw(st.integers(0, len(content)))
        length = draw(st.integers(0, 12))
        content[at : at + length] = draw(st.binary(max_size=12) | st.just(content[at:][:50]))
    return bytes(content[: draw(st.just(None) | st.integers(0, len(content)))])


def from_pickle(content: bytes, path: Path) -> None:
    entries = [('archive/data.pkl', content), *attacks.entries({})[1:]]
    attacks.write_entries(path, entries)


def made(value, path: Path) -> None:
    (attacks.write_zip if hash(str(value)) % 2 else attacks.write_legacy)(path, {'x': value})


files = st.one_of(
    pickles.map(lambda value: lambda path: made(value, path)),
    moved_steps().map(lambda content: lambda path: from_pickle(content, path)),
    st.binary(max_size=60).map(lambda content: lambda path: from_pickle(content, path)),
    damaged().map(lambda content: lambda path: path.write_bytes(content)),
)

outcomes: Counter = Counter()


def used(value) -> None:
    """Use a checkpoint as other code would."""
    repr(value)
    copy.deepcopy(value)
    torch.save(value, io.BytesIO())


def try_file(write, path: Path, before: dict) -> None:
    """Read one file, and check that the process is unchanged."""
    path.unlink(missing_ok=True)
    write(path)
    start, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        used(read_checkpoint(path))
        outcomes['read'] += 1
    except CheckpointError as error:
        assert len(str(error)) < 1000 and str(error).isprintable()
        outcomes['refused' if ': refused' in str(error) else 'damaged'] += 1
    assert time.process_time() - start < SECONDS
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    assert grown * 1024 < 2 * path.stat().st_size + MEMORY
    changed = dict(attacks.snapshot().items() ^ before.items())
    assert not changed, changed


def fuzz(number: int, folder: Path, again: bool = False) -> None:
    """Try a number of files, the same ones each time or others."""
    path = folder / 'fuzzed.pth'
    path.write_bytes(HONEST[True])
    used(read_checkpoint(path))  # torch imports parts of itself late
    before = attacks.snapshot()

    @settings(
        max_examples=number,
        derandomize=again,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(files)
    def run(write) -> None:
        try_file(write, path, before)

    run()


def main() -> None:
    """Fuzz for a number of minutes, and report the outcome."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--minutes', type=float, default=20)
    end = time.monotonic() + 60 * parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            fuzz(2000, Path(folder))
            print(sum(outcomes.values()), 'files:', dict(outcomes), flush=True)


if __name__ == '__main__':
    main()
