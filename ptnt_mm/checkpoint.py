"""From a checkpoint file to the weights of a backbone: read, find, adapt, report.

Loading is loud. MMEngine's own loading only warns when a file does not fit the model, and training
then starts from random numbers; here a weight of the trunk that the file does not give is an error
that names it, and one table says what was loaded, resized, unused and new.
"""

import hashlib
import math
import os
import re
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import torch
from mmengine.dist import barrier, get_rank
from mmengine.logging import print_log
from torch import Tensor, nn

from ptnt_mm.archs import ARCHS, PATCH
from ptnt_mm.safe_pickle import (
    CheckpointError,
    check_file,
    refuse_forced_unsafe_loading,
    safe_load,
)

__all__ = [
    'CheckpointError',
    'LoadReport',
    'Weights',
    'adapt',
    'cache_path',
    'check_described',
    'check_finite',
    'find_state_dict',
    'identify',
    'is_mmengine',
    'load_pretrained',
    'looks_like',
    'name_some',
    'only_tensors',
    'read',
    'split_prefix',
]

Weights = dict[str, Tensor]

TRUNK_ROOTS = frozenset(
    ('outer_pos', 'inner_pos', 'patch_embed', 'word_merges', 'sentence_merges', 'stages')
)
"""First parts of the names of PyramidTNT's weights."""

_PREFIXES = ('module', 'backbone', 'model')

# Where training codes put their weights. The authors and timm average into state_dict_ema;
# MMEngine's EMA hook swaps, so that its state_dict already is the average.
_ENTRIES = ('state_dict_ema', 'state_dict', 'model_ema', 'model')
_MMENGINE_ENTRIES = ('state_dict', 'model_ema', 'model')

# The output norms are ours, and a classifier's norm and head have no part in the trunk.
_NOT_TRUNK = re.compile(r'(norm[0-3]?|head)\.|.*num_batches_tracked$')

_OTHER_MODELS = (
    (r'pixel_(embed|pos)', 'a TNT of one scale'),
    (r'relative_position_bias_table', 'a Swin Transformer'),
    (r'patch_embed1\.|pos_embed1', 'a PVT'),
    (r'layer1\.0\.conv1\.weight', 'a ResNet'),
    (r'downsample_layers\.0\.0', 'a ConvNeXt'),
    (r'cls_token', 'a Vision Transformer'),
)

_TIMEOUT = 30.0
"""Seconds that a server may stay silent."""


@dataclass
class LoadReport:
    """What became of a file's weights and of a model's.

    Attributes:
        loaded: Keys that were taken as they are.
        resized: Position tables of another pretraining size: key -> (file's shape, model's).
        new: The model's own keys that no checkpoint need have: output norms, a classifier's head.
        missing: Keys of the model's trunk that the file does not have.
        mismatched: Keys whose shape cannot be converted: key -> (file's shape, model's).
        unused: Keys of the file that the model does not have.
    """

    loaded: list[str] = field(default_factory=list)
    resized: dict[str, tuple[tuple, tuple]] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    mismatched: dict[str, tuple[tuple, tuple]] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)

    def table(self) -> str:
        """One line for each fate: how many keys, and the first few."""
        resized = [f'{key} {was} -> {now}' for key, (was, now) in self.resized.items()]
        rows = (
            ('loaded', self.loaded, ''),
            ('resized', resized, name_some(resized)),
            ('unused', self.unused, name_some(self.unused)),
            ('new', self.new, name_some(self.new)),
            ('missing', self.missing, name_some(self.missing)),
        )
        return '\n'.join(f'  {name:<8}{len(keys):>5}  {some}'.rstrip() for name, keys, some in rows)

    def problems(self) -> list[str]:
        """Why the file does not fit, as ends of a sentence about it; none if it does."""
        shapes = [
            f'{key} is {found}, the model has {wanted}'
            for key, (found, wanted) in self.mismatched.items()
        ]
        lacks = f'lacks {len(self.missing)} weights: {name_some(self.missing)}'
        differs = f'has {len(shapes)} weights of another shape: {name_some(shapes)}'
        return [lacks] * bool(self.missing) + [differs] * bool(shapes)


def read(path: str | os.PathLike, map_location: Any = 'cpu') -> dict:
    """Read a ``.pth``, ``.pth.tar``, ``.pt`` or ``.safetensors`` file, or one from http(s).

    Nothing that the file contains is run. Text that a training stored, such as its config, comes
    back as text.

    Args:
        path: A file, or the address of one; that is kept in torch's hub folder.
        map_location: Where its tensors go, as in ``torch.load``.

    Raises:
        CheckpointError: The file cannot be had, is none, or is refused.
    """
    refuse_forced_unsafe_loading()
    scheme = re.match(r'(\w[\w+.-]*)://', str(path))
    if scheme and scheme[1] not in ('http', 'https'):
        raise CheckpointError(
            f'{path}: {scheme[0]} cannot be read; download the file and give its path'
        )
    file = _download(str(path)) if scheme else Path(path).expanduser()
    try:
        if file.suffix == '.safetensors':
            return _read_safetensors(file, map_location)
        return _described(file, safe_load(file, map_location))
    except CheckpointError as error:
        if not scheme:
            raise
        raise CheckpointError(
            f'{error} (it came from {path}; delete it before you try again)'
        ) from error


def is_mmengine(checkpoint: Mapping) -> bool:
    """Whether MMEngine's Runner wrote a checkpoint."""
    return 'meta' in checkpoint or 'message_hub' in checkpoint


def check_described(checkpoint: Mapping) -> None:
    """Check the kind of what MMEngine tells about a training, as far as anybody looks into it.

    Raises:
        CheckpointError: ``meta``, ``message_hub`` or its ``runtime_info`` is no dict.
    """
    hub = checkpoint.get('message_hub', {})
    entries = {'meta': checkpoint.get('meta', {}), 'message_hub': hub}
    if isinstance(hub, dict):
        entries['message_hub.runtime_info'] = hub.get('runtime_info', {})
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            raise CheckpointError(
                f"the checkpoint's {name} is a {type(entry).__name__}, not a dict as MMEngine "
                'writes it: save its weights alone, read by torch.load(..., weights_only=True)'
            )


def find_state_dict(checkpoint: Mapping) -> tuple[Weights, str]:
    """Find the weights in a checkpoint, averaged ones first: its tensors, and under which entry.

    Raises:
        CheckpointError: There are none.
    """
    for entry in _MMENGINE_ENTRIES if is_mmengine(checkpoint) else _ENTRIES:
        weights = only_tensors(checkpoint.get(entry))
        if weights:
            return weights, entry
    weights = only_tensors(checkpoint)
    if weights:
        return weights, 'the file itself'
    raise CheckpointError(
        f'holds no weights: expected one of {", ".join(_ENTRIES)}, or tensors by name, '
        f'but found {name_some(map(str, checkpoint)) or "nothing"}'
    )


def only_tensors(entry: Any) -> Weights:
    """The tensors of a dict, without what else modules store; of anything else, none."""
    if not isinstance(entry, Mapping):
        return {}
    return {key: w for key, w in entry.items() if isinstance(key, str) and isinstance(w, Tensor)}


def split_prefix(weights: Weights, roots: Iterable[str] = TRUNK_ROOTS) -> tuple[Weights, list[str]]:
    """Take the trunk out of a wrapper or a detector: its weights by bare name, other keys.

    Of all prefixes made of ``module.``, ``backbone.`` and ``model.``, the one that leads to most
    of the trunk is taken off; keys without it are the others.

    Args:
        weights: As they are in the file.
        roots: First parts of the names of the trunk's weights.
    """
    roots = frozenset(roots)
    votes: dict[str, int] = {'': 0}
    for key in weights:
        prefix, rest = _cut(key)
        if rest.split('.')[0] in roots:
            votes[prefix] = votes.get(prefix, 0) + 1
    return _take(weights, max(votes, key=votes.get))


def identify(weights: Mapping[str, Tensor]) -> tuple[str | None, int | None]:
    """Recognise a PyramidTNT by its shapes: the arch, and the pretraining size in pixels.

    Args:
        weights: By the trunk's own names. Some may be missing.

    Returns:
        None for what cannot be told: an arch of another's making, position tables not square.
    """
    widths = {}
    for i in range(4):
        norm = weights.get(f'stages.{i}.blocks.0.outer_norm1.weight')
        if norm is not None and norm.dim() == 1:
            widths[i] = norm.shape[0]
    matches = [
        name
        for name, row in ARCHS.items()
        if widths and all(row['outer_dims'][i] == width for i, width in widths.items())
    ]
    side = None
    if 'outer_pos' in weights and weights['outer_pos'].dim() == 3:
        side = _side(weights['outer_pos'].shape[1])
    return (matches[0] if len(matches) == 1 else None), (side and side * PATCH)


def looks_like(weights: Mapping[str, Tensor]) -> str:
    """Say in words which model weights belong to."""
    if any(key.startswith(('word_merges.', 'outer_pos')) for key in weights):
        arch, size = identify(weights)
        return f'PyramidTNT {arch or "of an unknown arch"}, {size or "?"} px'
    for pattern, name in _OTHER_MODELS:
        if any(re.search(pattern, key) for key in weights):
            return name
    return f'an unknown model with the keys {name_some(weights)}'


def adapt(weights: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> tuple[Weights, LoadReport]:
    """Fit a file's weights to a model's, and say what fits.

    Position tables of another pretraining size are converted: ``outer_pos`` (1, N, C) over its grid
    and ``relative_pos`` (1, heads, N, M) over the grids of its queries and keys, all grids square.

    Args:
        weights: Of the file, by the model's own names.
        own: Of the model; only keys and shapes are looked at.

    Returns:
        What can be copied into the model, and the report.
    """
    ready: Weights = {}
    report = LoadReport(unused=[key for key in weights if key not in own])
    for key, target in own.items():
        if key not in weights:
            (report.new if _NOT_TRUNK.match(key) else report.missing).append(key)
            continue
        weight = weights[key]
        shapes = (tuple(weight.shape), tuple(target.shape))
        if shapes[0] == shapes[1]:
            report.loaded.append(key)
            ready[key] = weight
        elif key.startswith('head.'):
            # Another number of classes: the head starts anew.
            report.unused.append(key)
            report.new.append(key)
        elif (resized := _resize(key, weight, target)) is not None:
            report.resized[key] = shapes
            ready[key] = resized
        else:
            report.mismatched[key] = shapes
    return ready, report


@torch.no_grad()
def load_pretrained(
    module: nn.Module,
    checkpoint: str | os.PathLike | Mapping,
    prefix: str | None = None,
    logger: Any = 'current',
) -> LoadReport:
    """Load a backbone's weights from a file, in place, or raise and change nothing.

    Reads the authors' checkpoints, timm's, MMEngine's of a whole detector, and bare state dicts.
    A head of another number of classes is left unused. Position tables of another pretraining size
    are converted to the module's.

    Args:
        module: Gets the weights.
        checkpoint: A file, an http(s) address, or what such a file holds.
        prefix: Of the keys to take, such as 'backbone.'; found by itself where not given.
        logger: Where the table goes, as MMEngine's ``print_log`` takes it.

    Raises:
        CheckpointError: The file cannot be read; it leaves weights of the trunk unset, or has them
            in a shape that cannot be converted; it holds NaN or infinity.
    """
    source = 'the given weights' if isinstance(checkpoint, Mapping) else str(checkpoint)
    content = checkpoint if isinstance(checkpoint, Mapping) else read(checkpoint)
    own = module.state_dict()
    try:
        weights, entry = find_state_dict(content)
    except CheckpointError as error:
        raise CheckpointError(f'{source}: {error}') from None
    trunk, others = _trunk_of(weights, own, prefix)
    ready, report = adapt(trunk, own)
    report.unused += others
    _check(report, trunk, own, source)
    check_finite(ready, source)
    for key, weight in ready.items():
        own[key].copy_(weight)
    print_log(f'Weights from {source} ({entry}):\n{report.table()}', logger=logger)
    return report


def name_some(keys: Iterable[str], limit: int = 4) -> str:
    """The first few of many names: 'a, b, c, d and 9 more'."""
    keys = list(keys)
    more = f' and {len(keys) - limit} more' if len(keys) > limit else ''
    return ', '.join(keys[:limit]) + more


def _trunk_of(weights: Weights, own: Weights, prefix: str | None) -> tuple[Weights, list[str]]:
    if prefix is None:
        roots = {key.split('.')[0] for key in own if not _NOT_TRUNK.match(key)}
        return split_prefix(weights, roots)
    return _take(weights, prefix.rstrip('.') + '.')


def _take(weights: Weights, prefix: str) -> tuple[Weights, list[str]]:
    """The weights under a prefix, without it, and the keys of all others."""
    taken = {key[len(prefix) :]: w for key, w in weights.items() if key.startswith(prefix)}
    return taken, [key for key in weights if not key.startswith(prefix)]


def _check(report: LoadReport, trunk: Weights, own: Weights, source: str) -> None:
    """Raise if the trunk would stay unset somewhere."""
    problems = report.problems()
    if problems:
        raise CheckpointError(
            f'{source}: {" and ".join(problems)}. The file looks like {looks_like(trunk)}; the '
            f'model is {looks_like(own)}. Give a file of this model, or build the model of the file'
        )


def check_finite(weights: Mapping[str, Tensor], source: str) -> None:
    """Raise a CheckpointError which names the weights that hold NaN or infinity."""
    bad = [
        key for key, w in weights.items() if w.is_floating_point() and not torch.isfinite(w).all()
    ]
    if bad:
        raise CheckpointError(
            f'{source}: {len(bad)} weights hold NaN or infinity: {name_some(bad)}. '
            'The training that wrote it had failed; take an earlier checkpoint'
        )


def _resize(key: str, table: Tensor, target: Tensor) -> Tensor | None:
    """Convert a position table to another pretraining size; None for anything else."""
    # Imported here because the layers' package imports the backbone, and that this module.
    from ptnt_mm.models.layers.position import resize_grid, resize_relative

    if table.dim() != target.dim():
        return None
    if key == 'outer_pos' and table.shape[::2] == target.shape[::2]:
        return _between_squares(resize_grid, table, (table.shape[1], target.shape[1]))
    if key.endswith('.relative_pos') and table.shape[:2] == target.shape[:2]:
        pairs = zip(table.shape[2:], target.shape[2:], strict=True)
        return _between_squares(resize_relative, table, *pairs)
    return None


def _between_squares(resize: Callable, table: Tensor, *places: tuple[int, int]) -> Tensor | None:
    """Call ``resize(table, from_hw, to_hw, ...)`` for square grids of so many places."""
    sides = [_side(number) for pair in places for number in pair]
    if None in sides:
        return None
    return resize(table.float(), *((side, side) for side in sides))


def _side(places: int) -> int | None:
    """Side of a square grid, in tokens."""
    side = math.isqrt(places)
    return side if side and side * side == places else None


def _cut(key: str) -> tuple[str, str]:
    """Divide a key behind its leading ``module.``, ``backbone.`` and ``model.``."""
    parts = key.split('.')
    n = next((i for i, part in enumerate(parts) if part not in _PREFIXES), 0)
    return ''.join(f'{part}.' for part in parts[:n]), '.'.join(parts[n:])


def _described(file: Path, checkpoint: dict) -> dict:
    try:
        check_described(checkpoint)
    except CheckpointError as error:
        raise CheckpointError(f'{file}: {error}') from None
    return checkpoint


def _read_safetensors(file: Path, map_location: Any) -> Weights:
    check_file(file)
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError:
        raise CheckpointError(
            f'{file}: needs the package safetensors: pip install safetensors'
        ) from None
    device = str(map_location) if isinstance(map_location, (str, torch.device)) else 'cpu'
    try:
        return load_file(file, device=device)
    except SafetensorError as error:
        raise CheckpointError(f'{file}: is no safetensors file, or is damaged ({error})') from error


def _download(url: str) -> Path:
    """Fetch a file once into torch's hub folder; with several processes, the first one does."""
    if get_rank() != 0:
        barrier()
        return _fetch(url)
    try:
        return _fetch(url)
    finally:
        barrier()


def cache_path(url: str) -> Path:
    """Where an address's file is kept: files of one name come from many addresses.

    Raises:
        CheckpointError: The address ends in a folder.
    """
    name = Path(urlparse(url).path).name
    if not name:
        raise CheckpointError(f'{url}: names no file')
    digest = hashlib.sha256(url.encode()).hexdigest()
    return Path(torch.hub.get_dir(), 'checkpoints', f'{digest[:12]}-{name}')


def _fetched_by_torch(url: str) -> Path | None:
    """The file as torch's hub keeps it, if the digest in its name says that it is the right one."""
    name = Path(urlparse(url).path).name
    file = Path(torch.hub.get_dir(), 'checkpoints', name)
    digest = re.search(r'-([0-9a-f]{8,64})\.', name)
    if not digest or not file.is_file():
        return None
    with file.open('rb') as content:
        found = hashlib.file_digest(content, 'sha256').hexdigest()
    return file if found.startswith(digest[1]) else None


def _fetch(url: str) -> Path:
    file = cache_path(url)
    if file.is_file():
        return file
    if same := _fetched_by_torch(url):
        return same
    file.parent.mkdir(parents=True, exist_ok=True)
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT)
    try:
        torch.hub.download_url_to_file(url, str(file), progress=sys.stderr.isatty())
    except (OSError, HTTPException, ValueError) as error:
        raise CheckpointError(
            f'{url}: cannot be downloaded ({error}). Fetch it in another way and give the path of '
            f'the file, or put it at {file}'
        ) from error
    finally:
        socket.setdefaulttimeout(before)
    return file
