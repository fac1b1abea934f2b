"""Inspect, convert or publish a checkpoint, without running any code in it."""

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import torch

from ptnt_mm.utils.atomic_files import check_new, sha256, write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import first_few
from ptnt_mm.weights.fit import (
    LoadReport,
    Trunk,
    compare,
    find_state_dict,
    not_finite,
    split_prefix,
)
from ptnt_mm.weights.identity import Identity, describe_network, identify
from ptnt_mm.weights.names import Weights, by_our_names, whose_names
from ptnt_mm.weights.networks import Network, family, trunk_roots
from ptnt_mm.weights.published import locate
from ptnt_mm.weights.reader.files import (
    check_written,
    is_address,
    is_hub_address,
    publishing_folder,
)
from ptnt_mm.weights.reader.hub import read_address
from ptnt_mm.weights.reader.read import read_checkpoint
from ptnt_mm.weights.reader.tensors_file import read_metadata, require_package

# Metadata of a published checkpoint. Inferencers print the class names.
_METADATA = (
    'epoch', 'iter', 'time', 'seed', 'mmengine_version', 'dataset_meta', 'arch', 'network',
    'metric',
)  # fmt: skip

# Entries of the card of weights from ``ptnt pretrain``.
# fmt: off
_CARD = (
    'backbone', 'teacher', 'images', 'value_range', 'views', 'size', 'command', 'sources',
    'ptnt_mm',
)
# fmt: on

# The largest size, in pixels, for which a backbone is built.
_MAX_SIZE = 2**14


def describe_checkpoint(file: str) -> Iterator[tuple[str, Any]]:
    """Describe a checkpoint, as pairs of a name and a value.

    Raises:
        CheckpointError: if it cannot be read, or contains no weights.
    """
    file = locate(file)
    checkpoint = read_checkpoint(file)
    weights, entry = find_state_dict(checkpoint, file)
    yield 'file', file
    if Path(file).is_file():
        yield 'bytes', Path(file).stat().st_size
        yield 'sha256', sha256(Path(file))
    yield 'weights', f'{len(weights)} tensors, from {entry}'
    stored, others = split_prefix(weights)
    trunk = by_our_names(stored)
    found = identify(trunk)
    network = family().get(found.kind)
    card = _card(file, checkpoint)
    report = None
    if found.arch:
        stated = card.get('network', checkpoint.get('meta', {}).get('network'))
        options, report = _options(trunk, found, network, stated)
        yield 'arch', ', '.join([_arch(found, network), *options])
    else:
        yield 'arch', f'unknown; it looks like {describe_network(trunk)}'
    if network:
        yield 'names', whose_names(stored)
    if found.size:
        size = f'{found.size} px'
        if found.size % network.size_step:
            size = f'{size}, not a multiple of {network.size_step}: its tables must be converted'
        yield 'pretraining', size
    if report:
        yield 'coverage', _coverage(report)
    if bad := not_finite(weights):
        yield 'broken', f'NaN or infinity in {first_few(bad)}'
    # Without an arch: weights that no backbone of the family has.
    roots = trunk_roots()
    strangers = [key for key in trunk if key.split('.')[0] not in roots]
    unused = (report.unused if report else strangers) + others
    yield 'unused', ', '.join(_unused(checkpoint, entry, unused)) or 'nothing'
    for name in _CARD:
        if isinstance(card.get(name), (str, int)):
            yield name, card[name]
    # Short entries of its metadata.
    hub = checkpoint.get('message_hub', {}).get('runtime_info', {})
    metadata = {**checkpoint.get('meta', {}), 'metric': hub.get('best_score'), **checkpoint}
    for name in ('epoch', 'iter', 'metric', 'time'):
        if isinstance(metadata.get(name), (str, int, float)):
            yield name, metadata[name]


def _card(file: str, checkpoint: dict[str, Any]) -> dict:
    """How weights of ``ptnt pretrain`` came about; empty for other files."""
    card = checkpoint.get('card')
    if file.endswith('.safetensors') and Path(file).is_file():
        try:
            card = json.loads(read_metadata(Path(file)).get('card', 'null'))
        except (ValueError, RecursionError):
            return {}
    return card if isinstance(card, dict) else {}


def convert_checkpoint(file: str, out: Path, overwrite: bool = False) -> Path:
    """Write the weights of a checkpoint, averaged ones if it has them, as plain tensors.

    Raises:
        UserError: if the file cannot be read, or ``out`` cannot be written.
    """
    check_written(out)
    check_new(out, overwrite)
    file = locate(file)
    weights = own_weights(read_checkpoint(file), file)
    content = as_safetensors(weights) if out.suffix == '.safetensors' else saved(weights)
    write_atomically(out, content)
    return out


def publish_checkpoint(file: str, folder: Path | None = None, overwrite: bool = False) -> Path:
    """Write a checkpoint without its optimizer, with the first 8 digits of its hash in its name.

    Raises:
        UserError: if the file cannot be read, or the new one cannot be written.
    """
    file = locate(file)
    folder = publishing_folder(file, folder)
    checkpoint = read_checkpoint(file)
    meta = checkpoint.get('meta', checkpoint)
    published = {key: meta[key] for key in _METADATA if key in meta}
    content = saved({'meta': published, 'state_dict': own_weights(checkpoint, file)})
    stem = re.sub(r'\.(pth\.tar|pth|pt|safetensors)$', '', _name(file))
    out = folder / f'{stem}-{hashlib.sha256(content).hexdigest()[:8]}.pth'
    check_new(out, overwrite)
    write_atomically(out, content)
    return out


def _name(file: str) -> str:
    """The name of a file or of an address; of a repository if the file is a hub's."""
    if is_hub_address(file):
        return read_address(file).repository.rpartition('/')[2]
    return Path(urlparse(file).path if is_address(file) else file).name


def own_weights(checkpoint: dict, file: str) -> Weights:
    """The weights of a checkpoint; views are copied, or torch would write their full storage."""
    weights, _ = find_state_dict(checkpoint, file)
    return {key: weight.clone().contiguous() for key, weight in weights.items()}


def _arch(found: Identity, network: type[Network]) -> str:
    """The name of an arch, with its network's if variants of several have it."""
    return f'{found.kind} {found.arch}' if network.arch_prefix else found.arch


def _options(
    trunk: Weights, found: Identity, network: type[Network], stated: object
) -> tuple[list[str], LoadReport]:
    """The options of a trunk as text, and its weights beside those of a network that has them.

    Those that the file states hold if its weights agree; they may be a stranger's.
    """
    if isinstance(stated, dict) and stated.get('arch') == found.arch:
        with suppress(Exception):
            options = {key: stated[key] for key in stated if key not in ('type', 'arch')}
            report = _compare(trunk, found, network, options)
            if not report.problems() and not report.new:
                return [f'{key}={value!r}' for key, value in options.items()], report
    options = network.options_of(trunk)
    report = _compare(trunk, found, network, options)
    has_groups = options.pop('norm_cfg', None) is not None
    parts = [f'{key}={value!r}' for key, value in options.items()]
    if options.get('position') == 'sinusoidal':
        parts += ["or position='none' (neither has weights)"]
    return parts + ['GroupNorm (the weights do not show how many groups)'] * has_groups, report


def _coverage(report: LoadReport) -> str:
    """How many weights of the trunk are in the file."""
    problems = [*report.missing, *report.mismatched]
    number = len(problems) + len(report.loaded) + len(report.resized)
    if not problems:
        return f'complete, all {number} of the trunk'
    return f'{len(problems)} of {number} missing or of a different shape: {first_few(problems)}'


def _compare(
    trunk: Weights, found: Identity, network: type[Network], options: dict[str, Any]
) -> LoadReport:
    """Compare with the full backbone of an arch, at the checkpoint's size if possible."""
    options = dict(options)
    if found.size and found.size <= _MAX_SIZE and found.size % network.size_step == 0:
        options['pretrain_img_size'] = found.size
    with torch.device('meta'):
        model = network(arch=found.arch, **options)
    return compare(trunk, model, Trunk(prefix='')).report


def _unused(checkpoint: dict, entry: str, keys: list[str]) -> list[str]:
    """Unused content: other weights by the first part of their names, and other entries."""
    heads = Counter(key.split('.')[0] for key in keys)
    unused = [f'{name} ({number})' for name, number in heads.items()]
    if entry in checkpoint:
        plain = (str, int, float, type(None))
        entries = [key for key, value in checkpoint.items() if not isinstance(value, plain)]
        unused += [str(key) for key in entries if key != entry]
    return unused


def saved(content: dict) -> bytes:
    """The bytes of ``torch.save``, in memory, so that the hash does not depend on a file name."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def as_safetensors(weights: Weights, metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file; raise a UserError for names that it cannot contain."""
    require_package()
    from safetensors.torch import save

    # Text with lone surrogates has no UTF-8; the other name is reserved in the format.
    odd = [key for key in weights if key == '__metadata__' or not key.isprintable()]
    if odd:
        raise UserError(
            f'.safetensors cannot contain weights named {first_few(odd)}: convert to .pth'
        )
    return save(weights, metadata)
