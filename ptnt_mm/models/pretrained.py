"""From a checkpoint to the weights of a backbone: find, adapt, report.

Loading is loud. MMEngine's own loading only warns when a file does not fit the model, and training
then starts from random numbers; here a weight of the trunk that the file does not give is an error
that names it, and one table says what was loaded, resized, unused and new.
"""

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from mmengine.logging import print_log
from torch import Tensor, nn

from ptnt_mm.checkpoints.errors import CheckpointError
from ptnt_mm.checkpoints.read import is_mmengine, read
from ptnt_mm.models.archs import ARCHS, PATCH
from ptnt_mm.utils.text import name_some

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
    (r'relative_position_bias_table', 'a Swin Transformer'),
    (r'patch_embed1\.|pos_embed1', 'a PVT'),
    (r'layer1\.0\.conv1\.weight', 'a ResNet'),
    (r'downsample_layers\.0\.0', 'a ConvNeXt'),
    (r'cls_token', 'a Vision Transformer'),
)


@dataclass
class LoadReport:
    """What became of a file's weights and of a model's.

    Attributes:
        loaded: Keys that were taken as they are.
        resized: Position tables of another pretraining size: key -> (file's shape, model's).
        new: The model's own keys that no checkpoint need have: output norms, a classifier's head,
            what a part declares in ``pretrained_may_lack``.
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
    if any(re.match(r'blocks\.\d+\.inner_|pixel_', key) for key in weights):
        return 'a TNT of one scale'
    if any(key.startswith(('word_merges.', 'outer_pos')) for key in weights):
        arch, size = identify(weights)
        return f'PyramidTNT {arch or "of an unknown arch"}, {size or "?"} px'
    for pattern, name in _OTHER_MODELS:
        if any(re.search(pattern, key) for key in weights):
            return name
    return f'an unknown model with the keys {name_some(weights)}'


def may_lack(module: nn.Module) -> frozenset[str]:
    """Keys of a module's weights that a pretrained file need not have.

    A part that brings weights of its own names them in a class attribute ``pretrained_may_lack``:
    a tuple of its parameters, buffers or submodules.
    """
    declared = tuple(
        f'{path}.{name}.'.lstrip('.')
        for path, part in module.named_modules()
        for name in getattr(part, 'pretrained_may_lack', ())
    )
    return frozenset(key for key in module.state_dict() if f'{key}.'.startswith(declared))


def adapt(
    weights: Mapping[str, Tensor], own: Mapping[str, Tensor], optional: Collection[str] = ()
) -> tuple[Weights, LoadReport]:
    """Fit a file's weights to a model's, and say what fits.

    Position tables of another pretraining size are converted: ``outer_pos`` (1, N, C) over its grid
    and ``relative_pos`` (1, heads, N, M) over the grids of its queries and keys, all grids square.

    Args:
        weights: Of the file, by the model's own names.
        own: Of the model; only keys and shapes are looked at.
        optional: Keys of the model that start anew where the file lacks them or differs in shape.

    Returns:
        What can be copied into the model, and the report.
    """
    ready: Weights = {}
    report = LoadReport(unused=[key for key in weights if key not in own])
    for key, target in own.items():
        if key not in weights:
            expected = key not in optional and not _NOT_TRUNK.match(key)
            (report.missing if expected else report.new).append(key)
            continue
        weight = weights[key]
        shapes = (tuple(weight.shape), tuple(target.shape))
        if shapes[0] == shapes[1]:
            report.loaded.append(key)
            ready[key] = weight
        elif key.startswith('head.') or key in optional:
            # Another number of classes, or a part of the user's: it starts anew.
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
    # A backbone whose authors' or others' files have names of their own translates them.
    trunk = getattr(module, 'translate_pretrained', dict)(trunk)
    ready, report = adapt(trunk, own, may_lack(module))
    needed = getattr(module, 'pretrained_must_have', ())
    report.missing += [key for key in report.new if key.split('.')[0] in needed]
    report.unused += others
    _check(report, trunk, own, source)
    check_finite(ready, source)
    for key, weight in ready.items():
        own[key].copy_(weight)
    print_log(f'Weights from {source} ({entry}):\n{report.table()}', logger=logger)
    return report


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
            f'{source}: {" and ".join(problems)}. The file looks like {looks_like(trunk)}; '
            f'the model is {looks_like(own)}. Give a file of this model, or build the model of the '
            'file. A part of your own names its new weights in pretrained_may_lack'
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
    from ptnt_mm.models.layers.position import resize_relative, resize_sentence_table

    if table.dim() != target.dim():
        return None
    if key == 'outer_pos' and table.shape[::2] == target.shape[::2]:
        # A table with one place more than a square has begins with that of a class token.
        class_tokens = int(_side(table.shape[1]) is None)
        resize = partial(resize_sentence_table, class_tokens=class_tokens)
        return _between_squares(
            resize, table, (table.shape[1] - class_tokens, target.shape[1] - class_tokens)
        )
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
