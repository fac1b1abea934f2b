"""Look into a checkpoint, convert it, or make it ready to be published; nothing in it is run.

python tools/checkpoint.py inspect ptnt_s.pth.tar
python tools/checkpoint.py convert epoch_12.pth weights.safetensors
python tools/checkpoint.py publish work_dirs/my_run/epoch_12.pth zoo/
"""

import argparse
import hashlib
import io
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ptnt_mm.checkpoint import (
    TRUNK_ROOTS,
    CheckpointError,
    Weights,
    adapt,
    find_state_dict,
    identify,
    looks_like,
    name_some,
    read,
    split_prefix,
)
from ptnt_mm.errors import UserError
from ptnt_mm.models import PyramidTNT

# What a published checkpoint tells about its training. Class names are what inferencers print.
_PUBLISHED = ('epoch', 'iter', 'time', 'seed', 'mmengine_version', 'dataset_meta', 'arch', 'metric')


def parse_args(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest='command', required=True)
    look = commands.add_parser('inspect', help='what a file holds, and whether all of it is there')
    convert = commands.add_parser('convert', help='write the weights alone, as plain tensors')
    publish = commands.add_parser('publish', help='drop the optimizer, put the hash into the name')
    for command in (look, convert, publish):
        command.add_argument('file', help='.pth, .pth.tar, .pt, .safetensors or an http(s) address')
    convert.add_argument('out', type=Path, help='a new .safetensors or .pth file')
    publish.add_argument('out', type=Path, nargs='?', help="a folder; the file's own by default")
    for command in (convert, publish):
        command.add_argument('--overwrite', action='store_true', help='replace an existing file')
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    args = parse_args(arguments)
    try:
        if args.command == 'inspect':
            for name, value in describe(args.file):
                print(f'{name + ":":<13} {value}')
        elif args.command == 'convert':
            print(f'wrote {convert_file(args.file, args.out, args.overwrite)}')
        else:
            print(f'wrote {publish_file(args.file, args.out, args.overwrite)}')
    except UserError as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    return 0


def describe(file: str) -> Iterator[tuple[str, Any]]:
    """Say what a checkpoint is, as pairs of a name and a value.

    Raises:
        CheckpointError: It cannot be read, or holds no weights.
    """
    checkpoint = read(file)
    weights, entry = _weights(checkpoint, file)
    trunk, others = split_prefix(weights)
    arch, size = identify(trunk)
    yield 'file', file
    if Path(file).is_file():
        yield 'bytes', Path(file).stat().st_size
        yield 'sha256', _sha256(Path(file).read_bytes())
    yield 'weights', f'{len(weights)} tensors, from {entry}'
    yield 'arch', arch or f'none of ours; it looks like {looks_like(weights)}'
    if size:
        yield 'pretraining', f'{size} px'
    if arch:
        yield 'coverage', _coverage(trunk, arch, size)
    bad = [key for key, w in weights.items() if w.is_floating_point() and not w.isfinite().all()]
    if bad:
        yield 'broken', f'NaN or infinity in {name_some(bad)}'
    yield 'unused', ', '.join(_unused(checkpoint, entry, trunk, others)) or 'nothing'
    yield from _told(checkpoint).items()


def convert_file(file: str, out: Path, overwrite: bool = False) -> Path:
    """Write the weights of a checkpoint, averaged ones if it has them, as plain tensors.

    Raises:
        UserError: The file cannot be read, or ``out`` cannot be written.
    """
    if out.suffix not in ('.pth', '.safetensors'):
        raise UserError(f'{out}: end the name in .safetensors or .pth, to say which is wanted')
    _check_target(out, overwrite)
    weights, _ = _weights(read(file), file)
    # Some are views of others, which would be written whole.
    weights = {key: weight.clone().contiguous() for key, weight in weights.items()}
    return _write(
        out, _as_safetensors(weights) if out.suffix == '.safetensors' else _saved(weights)
    )


def publish_file(file: str, folder: Path | None = None, overwrite: bool = False) -> Path:
    """Write a checkpoint without its optimizer, with the first 8 digits of its hash in its name.

    Raises:
        UserError: The file cannot be read, or the new one cannot be written.
    """
    folder = folder or Path(file).parent
    if not folder.is_dir():
        raise UserError(f'{folder} is no folder: make it, or name another')
    checkpoint = read(file)
    weights, _ = _weights(checkpoint, file)
    weights = {key: weight.clone().contiguous() for key, weight in weights.items()}
    meta = checkpoint.get('meta', checkpoint)
    told = {key: meta[key] for key in _PUBLISHED if key in meta}
    content = _saved({'meta': told, 'state_dict': weights})
    stem = Path(file).name.split('.pth')[0].split('.safetensors')[0]
    out = folder / f'{stem}-{_sha256(content)[:8]}.pth'
    _check_target(out, overwrite)
    return _write(out, content)


def _weights(checkpoint: dict, file: str) -> tuple[Weights, str]:
    try:
        return find_state_dict(checkpoint)
    except CheckpointError as error:
        raise CheckpointError(f'{file}: {error}') from None


def _coverage(trunk: Weights, arch: str, size: int | None) -> str:
    """Compare with the whole backbone of an arch."""
    with torch.device('meta'):
        own = PyramidTNT(arch, pretrain_img_size=size).state_dict()
    _, report = adapt(trunk, own)
    problems = [*report.missing, *report.mismatched]
    if not problems:
        return f'complete, all {len(own)} of the trunk'
    return f'{len(problems)} of {len(own)} missing or misshapen: {name_some(problems)}'


def _unused(checkpoint: dict, entry: str, trunk: Weights, others: list[str]) -> list[str]:
    """What a backbone has no use for: other weights by their first name, other entries."""
    keys = [key for key in trunk if key.split('.')[0] not in TRUNK_ROOTS] + others
    heads = Counter(key.split('.')[0] for key in keys)
    unused = [f'{name} ({number})' for name, number in heads.items()]
    if entry in checkpoint:
        plain = (str, int, float, type(None))
        entries = [key for key, value in checkpoint.items() if not isinstance(value, plain)]
        unused += [str(key) for key in entries if key != entry]
    return unused


def _told(checkpoint: dict) -> dict[str, Any]:
    """What a checkpoint tells about its training, where it is short."""
    hub = checkpoint.get('message_hub', {}).get('runtime_info', {})
    told = {**checkpoint.get('meta', {}), 'metric': hub.get('best_score'), **checkpoint}
    names = ('epoch', 'iter', 'metric', 'time')
    return {name: told[name] for name in names if isinstance(told.get(name), (str, int, float))}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _saved(content: dict) -> bytes:
    """As ``torch.save`` writes it; in memory, so that no file name gets into the hash."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def _as_safetensors(weights: Weights) -> bytes:
    try:
        from safetensors.torch import save
    except ImportError:
        raise UserError('.safetensors needs a package: pip install safetensors') from None
    return save(weights)


def _check_target(out: Path, overwrite: bool) -> None:
    if out.exists() and not overwrite:
        raise UserError(f'{out} exists: choose another name, or give --overwrite')
    if not out.parent.is_dir():
        raise UserError(f'{out} cannot be written: there is no folder {out.parent}')


def _write(out: Path, content: bytes) -> Path:
    """Write a file under its name only when it is whole."""
    partial = out.with_name(f'.{out.name}.partial-{os.getpid()}')
    try:
        partial.write_bytes(content)
        os.replace(partial, out)
    except OSError as error:
        raise UserError(f'{out} cannot be written: {error}') from error
    finally:
        partial.unlink(missing_ok=True)
    return out


if __name__ == '__main__':
    sys.exit(main())
