"""Load a backbone's weights from a checkpoint: find, adapt, report.

Nothing fails silently. MMEngine only warns when a file does not fit the model, and training then
starts from random initialisation. Here a trunk weight that is missing from the file is an error
that names it, and one table lists the loaded, resized, unused and new weights.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import torch
from mmengine.logging import print_log
from mmengine.model import PretrainedInit
from torch import Tensor, nn

from ptnt_mm.models.positions import resize_learned
from ptnt_mm.models.pyramid_tnt import Stage
from ptnt_mm.registry import WEIGHT_INITIALIZERS
from ptnt_mm.utils.text import first_few
from ptnt_mm.weights.identity import looks_like, side_of_square
from ptnt_mm.weights.load_report import LoadReport
from ptnt_mm.weights.names import Weights, by_our_names
from ptnt_mm.weights.published import locate
from ptnt_mm.weights.reader.read import read_checkpoint
from ptnt_mm.weights.reader.refusal import CheckpointError

# fmt: off
TRUNK_ROOTS = frozenset((
    'outer_pos', 'inner_pos', 'cls_token', 'patch_embed', 'proj', 'proj_norm1', 'proj_norm2',
    'word_merges', 'sentence_merges', 'stages', 'blocks', 'peg',
))
# fmt: on
"""First parts of the names of this family's weights."""

# Where training code stores weights, averaged ones first.
_ENTRIES = ('state_dict_ema', 'state_dict', 'model_ema', 'model')

_WRAPPERS = re.compile(r'((module|backbone|model|network)\.)*')  # network: of TimmFeatures

_COUNTER = 'num_batches_tracked'  # of BatchNorm; nothing here reads it


class Table(NamedTuple):
    """A kind of position table."""

    resize: Callable[..., Tensor]
    """Takes the table, and for each grid its (h, w) in the file and in the model."""

    dims: int

    grid_axes: tuple[int, ...]
    """Axes along which the places of a grid are counted."""

    has_class_token: bool = False
    """Whether a class token may come before the grid: one more place than a square number."""


def find_state_dict(checkpoint: Mapping, source: str = 'the checkpoint') -> tuple[Weights, str]:
    """Find the weights in a checkpoint, averaged ones first; return them and their entry's name.

    Raises:
        CheckpointError: if there are none; ``source`` names the file.
    """
    is_mmengine = 'meta' in checkpoint or 'message_hub' in checkpoint
    for entry in _ENTRIES:
        # MMEngine's EMA hook swaps averaged weights in: its state_dict is the average.
        if is_mmengine and entry == 'state_dict_ema':
            continue
        if weights := only_tensors(checkpoint.get(entry)):
            return weights, entry
    if weights := only_tensors(checkpoint):
        return weights, 'the file itself'
    raise CheckpointError(
        f'{source}: contains no weights: expected one of {", ".join(_ENTRIES)}, or tensors by '
        f'name, but found {first_few(map(str, checkpoint)) or "nothing"}'
    )


def only_tensors(entry: Any) -> Weights:
    """The tensors of a dict, without other state of modules; empty for anything else."""
    if not isinstance(entry, Mapping):
        return {}
    return {key: w for key, w in entry.items() if isinstance(key, str) and isinstance(w, Tensor)}


def split_prefix(
    weights: Weights, roots: Collection[str] = TRUNK_ROOTS, prefix: str | None = None
) -> tuple[Weights, list[str]]:
    """Extract the trunk from a wrapper or a detector: its weights by bare name, and other keys.

    Args:
        weights: Weights of the file.
        roots: First parts of the names of the trunk's weights.
        prefix: Prefix of the trunk. By default, the combination of ``module.``, ``backbone.``,
            ``model.`` and ``network.`` that matches most of the trunk.
    """
    if prefix is None:
        matches = Counter({'': 0})
        for key in weights:
            wrappers = _WRAPPERS.match(key)[0]
            if key.removeprefix(wrappers).split('.')[0] in roots:
                matches[wrappers] += 1
        prefix = max(matches, key=matches.get)
    taken = {key.removeprefix(prefix): w for key, w in weights.items() if key.startswith(prefix)}
    return taken, [key for key in weights if not key.startswith(prefix)]


def may_lack(module: nn.Module) -> frozenset[str]:
    """Keys of a module's weights that a pretrained file need not have.

    These are the counters of batches, and what the module and its parts list in
    ``pretrained_may_lack``, see :class:`Backbone`.
    """
    listed = tuple(
        f'{path}.{name}.'.lstrip('.')
        for path, part in module.named_modules()
        for name in getattr(part, 'pretrained_may_lack', ())
    )
    return frozenset(
        key for key in module.state_dict() if key.endswith(_COUNTER) or f'{key}.'.startswith(listed)
    )


def find_tables(model: nn.Module) -> dict[str, Table]:
    """The position tables of a model by their keys; each stage says how its own is resized."""
    tables = {}
    for key in model.state_dict():
        path, _, name = key.rpartition('.')
        if name == 'outer_pos':
            tables[key] = Table(resize_learned, dims=3, grid_axes=(1,), has_class_token=True)
        elif name == 'relative_pos' and isinstance(stage := model.get_submodule(path), Stage):
            tables[key] = Table(stage.relative_position.resize, dims=4, grid_axes=(2, 3))
    return tables


def adapt(
    weights: Mapping[str, Tensor],
    own: Mapping[str, Tensor],
    optional: Collection[str],
    tables: Mapping[str, Table],
) -> tuple[Weights, LoadReport]:
    """Fit a file's weights to a model, and report the result.

    Position tables of a different pretraining size are converted: ``outer_pos`` (1, N, C) over its
    grid and ``relative_pos`` (1, heads, N, M) over the grids of its queries and keys, all grids
    square.

    Args:
        weights: Weights of the file, by the model's names.
        own: Weights of the model; only keys and shapes are read.
        optional: Keys of the model that may be missing from the file or differ in shape.
        tables: Tables that may be converted, by key; all other weights must have the model's
            shapes.

    Returns:
        Weights to copy into the model, and the report.
    """
    ready: Weights = {}
    # Frozen BatchNorm does not count batches.
    unused = [key for key in weights if key not in own and not key.endswith(_COUNTER)]
    report = LoadReport(unused=unused)
    for key, target in own.items():
        if key not in weights:
            absent = report.new if key in optional else report.missing
            absent.append(key)
            continue
        shapes = (tuple(weights[key].shape), tuple(target.shape))
        if shapes[0] == shapes[1]:
            report.loaded.append(key)
            ready[key] = weights[key]
        elif key in optional:
            # Another number of classes, or a custom module.
            report.unused.append(key)
            report.new.append(key)
        elif (resized := _resize(tables, key, weights[key], target)) is not None:
            report.resized[key] = shapes
            ready[key] = resized
        else:
            report.mismatched[key] = shapes
    return ready, report


def pretrained_init(init_cfg: dict | list[dict] | None) -> dict | None:
    """The Pretrained dict of an ``init_cfg``, in any form that MMEngine or mmdet accepts.

    The name of published weights becomes their address.

    Raises:
        CheckpointError: if it names no checkpoint, or one that cannot be downloaded.
    """
    for init in init_cfg if isinstance(init_cfg, list) else [init_cfg or {}]:
        # Configs of mmdet's PVT omit the type.
        kind = init.get('type', 'Pretrained' if 'checkpoint' in init else None)
        if kind is PretrainedInit or str(kind).rpartition('.')[2] == 'Pretrained':
            if not isinstance(init.get('checkpoint'), str | os.PathLike):
                raise CheckpointError(
                    f'init_cfg is {init}: expected checkpoint= with a file or an address as well'
                )
            return dict(init, checkpoint=locate(str(init['checkpoint'])))
    return None


@torch.no_grad()
def load_pretrained(
    module: nn.Module,
    checkpoint: str | os.PathLike | Mapping,
    prefix: str | None = None,
    logger: Any = 'current',
) -> LoadReport:
    """Load a backbone's weights from a file, in place, or raise and change nothing.

    Reads the authors' checkpoints, timm's, mmpretrain's, MMEngine's of a whole detector, and bare
    state dicts. A head of a different number of classes is left unused. Position tables of another
    pretraining size are converted to the module's.

    Args:
        module: Module to load the weights into.
        checkpoint: A file, an http(s) address, the name of published weights such as 'tnt_s', or
            the content of such a file.
        prefix: Prefix of the keys to load, such as 'backbone.'; found automatically by default.
        logger: Logger of the table, as for MMEngine's ``print_log``.

    Raises:
        CheckpointError: The file cannot be read, lacks weights of the trunk, has one in a shape
            that cannot be converted, or contains NaN or infinity.
    """
    is_content = isinstance(checkpoint, Mapping)
    source = 'the given weights' if is_content else locate(str(checkpoint))
    content = checkpoint if is_content else read_checkpoint(source)
    weights, entry = find_state_dict(content, source)
    own, optional = module.state_dict(), may_lack(module)
    roots = {key.split('.')[0] for key in own if key not in optional}
    trunk, others = split_prefix(weights, roots, prefix and prefix.rstrip('.') + '.')
    trunk = by_our_names(trunk)
    ready, report = adapt(trunk, own, optional, find_tables(module))
    report.unused += others
    if problems := report.problems():
        raise CheckpointError(
            f'{source}: {" and ".join(problems)}. The file looks like {looks_like(trunk)}; '
            f'the model is {looks_like(own)}. Use a file of this model, or build the model of the '
            'file. A custom module lists its new weights in pretrained_may_lack'
        )
    check_finite(ready, source)
    for key, weight in ready.items():
        own[key].copy_(weight)
    named = source if is_content else checkpoint
    print_log(f'Weights from {named} ({entry}):\n{report.table()}', logger=logger)
    return report


@WEIGHT_INITIALIZERS.register_module()
class PretrainedTrunk:
    """Give a backbone the weights that its ``init_cfg`` names, see :func:`load_pretrained`.

    Args:
        init_cfg: Of the backbone. If it names no weights, ``init`` is None.

    Raises:
        CheckpointError: if it names no checkpoint, or one that cannot be downloaded.
    """

    def __init__(self, init_cfg: dict | list[dict] | None):
        self.init = pretrained_init(init_cfg)

    def __call__(self, module: nn.Module) -> None:
        """Load the weights, or raise a CheckpointError."""
        load_pretrained(module, self.init['checkpoint'], self.init.get('prefix'))


def check_finite(weights: Mapping[str, Tensor], source: str) -> None:
    """Raise a CheckpointError that names the weights with NaN or infinity, if there are any."""
    bad = [key for key, weight in weights.items() if not torch.isfinite(weight).all()]
    if bad:
        raise CheckpointError(
            f'{source}: {len(bad)} weights contain NaN or infinity: {first_few(bad)}. '
            'The run that wrote it had failed; use an earlier checkpoint'
        )


def _resize(tables: Mapping[str, Table], key: str, table: Tensor, target: Tensor) -> Tensor | None:
    """Convert a position table to a different pretraining size; None for anything else."""
    if key not in tables:
        return None
    kind = tables[key]
    if table.dim() != kind.dims or target.dim() != kind.dims:
        return None
    class_tokens = 0
    if kind.has_class_token and side_of_square(table.shape[1]) is None:
        class_tokens = 1
    grids = []
    for axis, (was, now) in enumerate(zip(table.shape, target.shape, strict=True)):
        if axis not in kind.grid_axes:
            if was != now:
                return None
            continue
        for places in (was - class_tokens, now - class_tokens):
            side = side_of_square(places)
            if side is None:
                return None
            grids.append((side, side))
    return kind.resize(table.float(), *grids)
