"""Fit the weights of a file to a model, and report the outcome for each of them.

:func:`fit` finds the weights in the content of a file, removes the prefixes of wrappers, renames
them to the model's names, resizes position tables, and refuses what does not fit or is not finite.
A :class:`Scope` says for which part of a model the file is.

Nothing fails silently. MMEngine only warns when a file does not fit, and a run then starts from
random initialisation.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor, nn

from ptnt_mm.utils.text import first_few
from ptnt_mm.weights.identity import identify, recognised
from ptnt_mm.weights.names import Weights, as_classifier, by_our_names, joined_name
from ptnt_mm.weights.networks import Table, side_of_square, trunk_roots
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError

# Where training code stores weights, averaged ones first.
_ENTRIES = ('state_dict_ema', 'state_dict', 'model_ema', 'model')

# DistributedDataParallel puts it before all names.
_MODULE = 'module.'

# network: of TimmFeatures; _orig_mod: of torch.compile.
_WRAPPERS = re.compile(r'((module|backbone|model|network|_orig_mod)\.)*')

OTHER_FILE = (
    'Use a file of this model, or build the model of the file. A custom module lists its new '
    'weights in pretrained_may_lack'
)
"""What to do if a file belongs to another network."""

_COUNTER = 'num_batches_tracked'  # of BatchNorm; older files and frozen layers have none

Shapes = dict[str, tuple[tuple[int, ...], tuple[int, ...]]]
"""By key, the shape of a weight in the file and in the model."""


@dataclass
class LoadReport:
    """The outcome for each weight of a file and a model, by key; shapes are (file's, model's)."""

    loaded: list[str] = field(default_factory=list)  # copied unchanged
    resized: Shapes = field(default_factory=dict)  # position tables of other pretraining sizes
    unused: list[str] = field(default_factory=list)  # in the file but not in the model
    new: list[str] = field(default_factory=list)  # only in the model, and optional in a file
    drawn: list[str] = field(default_factory=list)  # the same, and they start at random
    missing: list[str] = field(default_factory=list)  # only in the model, but required
    mismatched: Shapes = field(default_factory=dict)  # of a shape that cannot be converted

    def table(self) -> str:
        """One line for each outcome that there is: how many keys, and the first few."""
        resized = [f'{key} {was} -> {now}' for key, (was, now) in self.resized.items()]
        named = dict(resized=resized, unused=self.unused, new=self.new, missing=self.missing)
        lines = [f'  {"loaded":<8}{len(self.loaded):>5}']
        for fate, keys in named.items():
            if keys:
                lines.append(f'  {fate:<8}{len(keys):>5}  {first_few(keys)}')
        return '\n'.join(lines)

    def problems(self) -> list[str]:
        """Reasons why the file does not fit, as predicates of a sentence; empty if it fits."""
        problems = []
        if self.missing:
            is_all = 'all ' * (not self.loaded and not self.resized and not self.mismatched)
            number = len(self.missing)
            problems.append(f'lacks {is_all}{number} weights: {first_few(self.missing)}')
        if self.mismatched:
            shapes = self.mismatched.items()
            differing = [f'{key} is {was}, the model has {now}' for key, (was, now) in shapes]
            problems.append(
                f'has {len(shapes)} weights of a different shape: {first_few(differing, 2)}'
            )
        # Layers whose scale was loaded without the statistics that it belongs to.
        parts = (key.rpartition('.') for key in self.unused)
        layers = [layer for layer, _, name in parts if name == 'running_mean']
        if norms := [layer for layer in layers if f'{layer}.weight' in self.loaded]:
            problems.append(
                f'has statistics of BatchNorm for {first_few(norms)}, which are not BatchNorm '
                "layers: build the model with norm_cfg=dict(type='BN')"
            )
        return problems


class Needs(NamedTuple):
    """What a model needs from a file."""

    own: Weights  # the model's weights; only keys and shapes are read
    optional: Collection[str]  # keys that may be missing from the file or differ in shape
    # Position tables that may be converted, by key; others must have the model's shapes.
    tables: Mapping[str, Table]


class Stored(NamedTuple):
    """The weights of a file that are for a model."""

    weights: Weights  # by the model's names
    entry: str  # of the file, which has them
    others: Sequence[str] = ()  # keys of the other weights in this entry


class Fit(NamedTuple):
    """The weights of a file next to those of a model."""

    stored: Stored
    ready: Weights  # to copy into the model, in its shapes
    report: LoadReport


def fit(content: Mapping, model: nn.Module, scope: 'Scope', source: str = 'the checkpoint') -> Fit:
    """Fit the weights of a file to a model; neither is changed.

    Args:
        content: Content of the file.
        model: Without a wrapper such as DistributedDataParallel.
        scope: The part of the model that the file is for.
        source: The file or its address, for errors.

    Raises:
        CheckpointError: if there are no weights, one that the model needs is missing or has a shape
            that cannot be converted, or one that would be copied contains NaN or infinity.
    """
    fitted = compare(content, model, scope, source)
    if problems := fitted.report.problems():
        own, reasons = scope.needs(model).own, f': it {"; it ".join(problems)}'
        weights, advice = fitted.stored.weights, scope.advice(fitted, own)
        raise misfit(source, model, reasons, weights, own, advice)
    check_finite(fitted.ready, source)
    return fitted


def misfit(
    source: str, model: nn.Module, reasons: str, weights: Weights, own: Weights, advice: str
) -> CheckpointError:
    """An error that says why a file does not fit a model, and names the networks of both.

    Args:
        source: The file or its address.
        model: The model.
        reasons: Why it does not fit, after the model's name.
        weights: Weights of the file; only keys and shapes are read.
        own: The model's, likewise.
        advice: What to do.
    """
    kind = type(model).__name__
    found, wanted = (recognised(split_prefix(every)[0]) for every in (weights, own))
    others = [key for key in weights if key not in own] or list(weights)
    hint = f'The file looks like {found}' if found else f'The file has {first_few(others, 2)}'
    if found and found == wanted:
        hint = f'Both look like {found}'
    elif wanted:
        hint += f'; the model is {wanted}'
    return CheckpointError(f'{source} does not fit the model {kind}{reasons}. {hint}. {advice}')


def compare(
    content: Mapping, model: nn.Module, scope: 'Scope', source: str = 'the checkpoint'
) -> Fit:
    """Fit as :func:`fit`, but only report what does not fit.

    Raises:
        CheckpointError: if there are no weights at all.
    """
    stored = scope.find(content, model, source)
    ready, report = adapt(stored.weights, scope.needs(model))
    report.unused += stored.others
    return Fit(stored, ready, report)


class Scope(ABC):
    """The part of a model that a file is for."""

    @abstractmethod
    def find(self, content: Mapping, model: nn.Module, source: str) -> Stored:
        """Find the weights in the content of a file, by the model's names."""

    @abstractmethod
    def needs(self, model: nn.Module) -> Needs:
        """What the model needs from the file."""

    @abstractmethod
    def advice(self, fitted: Fit, own: Weights) -> str:
        """What to do if they do not fit."""


class Trunk(Scope):
    """A network of the family or of timm, from a file of any source.

    The file is of this network alone, of a classifier or of a whole detector, possibly wrapped.

    Args:
        prefix: Prefix of its weights in the file, such as 'backbone.'; found by default.
    """

    def __init__(self, prefix: str | None = None):
        self.prefix = prefix and prefix.rstrip('.') + '.'

    def find(self, content: Mapping, model: nn.Module, source: str) -> Stored:
        """From any entry, with any prefix and the names of any source."""
        weights, entry = find_state_dict(content, source)
        own, optional, _ = self.needs(model)
        roots = {key.split('.')[0] for key in own if key not in optional}
        trunk, others = split_prefix(weights, roots, self.prefix)
        if self.prefix:  # of a backbone, in which the network may be wrapped
            trunk, more = split_prefix(trunk, roots)
            others += [self.prefix + key for key in more]
        ours = {joined_name(key, roots): w for key, w in by_our_names(trunk).items()}
        return Stored(ours, entry, others)

    def needs(self, model: nn.Module) -> Needs:
        """All weights that it does not list in ``pretrained_may_lack``."""
        return Needs(only_tensors(model.state_dict()), may_lack(model), find_tables(model))

    def advice(self, fitted: Fit, own: Weights) -> str:
        """It is another network, or has a part that no file knows."""
        return OTHER_FILE


class Whole(Scope):
    """A whole model, from a file with each of its weights in the model's shape."""

    def find(self, content: Mapping, model: nn.Module, source: str) -> Stored:
        """From the entry that MMEngine reads; published classifiers get mmpretrain's names."""
        own = model.state_dict()
        if 'head.fc.weight' in own:
            weights, entry = find_state_dict(content, source)
            weights = without_module(weights)
            if 'head.weight' in weights:
                return Stored(as_classifier(weights, own), entry)
        weights, entry = find_state_dict(content, source, ('state_dict',))
        return Stored(without_module(weights), entry)

    def needs(self, model: nn.Module) -> Needs:
        """All weights; only the counters of batches may be missing."""
        own = only_tensors(model.state_dict())
        return Needs(own, [key for key in own if key.endswith(_COUNTER)], {})

    def advice(self, fitted: Fit, own: Weights) -> str:
        """The most likely mistake, and how to correct it."""
        weights, report = fitted.stored.weights, fitted.report
        found, wanted = (identify(split_prefix(every)[0]) for every in (weights, own))
        if not report.loaded and not report.mismatched:
            if found.kind and not any(key.startswith('backbone.') for key in weights):
                return (
                    'The file contains only a backbone: pass it to ptnt train as `pretrained`, or '
                    "set model.backbone.init_cfg=dict(type='Pretrained', checkpoint=...)"
                )
            return 'Use a checkpoint of this model'
        if found[:2] != wanted[:2]:
            return 'Use a checkpoint of this model, or set model.backbone'
        if found.size and found.size != wanted.size:
            return (
                f'The position tables belong to images of {found.size} pixels, the model to '
                f'{wanted.size}: set model.backbone.pretrain_img_size={found.size}'
            )
        wrong = [*report.missing, *report.mismatched]
        if report.mismatched and not any(key.startswith(('backbone.', 'neck.')) for key in wrong):
            return 'The heads probably have a different number of classes: set num_classes to match'
        return 'It belongs to a different config: use that config, or a different checkpoint'


class BackboneOfWhole(Whole):
    """The backbone of a whole model, from a file of a whole model; the other parts may differ."""

    def needs(self, model: nn.Module) -> Needs:
        """The backbone's weights; its position tables may be of a different pretraining size."""
        own = only_tensors(model.state_dict())
        backbone = {key: weight for key, weight in own.items() if key.startswith('backbone.')}
        return Needs(backbone, may_lack(model), find_tables(model))


def find_state_dict(
    content: Mapping, source: str = 'the checkpoint', entries: Sequence[str] = _ENTRIES
) -> tuple[Weights, str]:
    """Find the weights in a checkpoint, averaged ones first; return them and their entry's name.

    Raises:
        CheckpointError: if there are none; ``source`` names the file.
    """
    is_mmengine = 'meta' in content or 'message_hub' in content
    for entry in entries:
        # MMEngine's EMA hook swaps averaged weights in: its state_dict is the average.
        if is_mmengine and entry == 'state_dict_ema':
            continue
        if weights := only_tensors(content.get(entry)):
            return weights, entry
    if weights := only_tensors(content):
        return weights, 'the whole file'
    raise CheckpointError(
        f'{source}: contains no weights: expected {", ".join(entries)}, or tensors by '
        f'name, but found {first_few(map(str, content)) or "nothing"}'
    )


def only_tensors(entry: Any) -> Weights:
    """The tensors of a dict, without other state of modules; empty for anything else."""
    if not isinstance(entry, Mapping):
        return {}
    return {key: w for key, w in entry.items() if isinstance(key, str) and isinstance(w, Tensor)}


def without_module(weights: Weights) -> Weights:
    """The weights without the prefixes of DistributedDataParallel and torch.compile."""
    return {re.sub(r'^(module\.|_orig_mod\.)*', '', key): w for key, w in weights.items()}


def split_prefix(
    weights: Weights, roots: Collection[str] | None = None, prefix: str | None = None
) -> tuple[Weights, list[str]]:
    """Extract the trunk from a wrapper or a detector: its weights by bare name, and other keys.

    Args:
        weights: Weights of the file.
        roots: First parts of the names of the trunk's weights; by default those of the family.
        prefix: Prefix of the trunk. By default, the combination of ``module.``, ``backbone.``,
            ``model.``, ``network.`` and ``_orig_mod.`` that matches most of the trunk.
    """
    if prefix is None:
        roots = trunk_roots() if roots is None else roots
        matches = Counter({'': 0})
        for key in weights:
            wrappers = _WRAPPERS.match(key)[0]
            name = joined_name(key.removeprefix(wrappers), roots)
            if name.split('.')[0] in roots:
                matches[wrappers] += 1
        prefix = max(matches, key=matches.get)
        if not matches[prefix] and all(key.startswith(_MODULE) for key in weights):
            prefix = _MODULE  # around the names of another source
    taken = {key.removeprefix(prefix): w for key, w in weights.items() if key.startswith(prefix)}
    return taken, [key for key in weights if not key.startswith(prefix)]


def may_lack(module: nn.Module) -> frozenset[str]:
    """Keys of a module's weights that a pretrained file need not have.

    These are the counters of batches, and what the module and its parts list in
    ``pretrained_may_lack``, see :class:`Network`.
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
    """The position tables of a model by their keys, as its parts list them.

    See :meth:`Network.pretrained_tables`.
    """
    return {
        f'{path}.{name}'.lstrip('.'): table
        for path, part in model.named_modules()
        if hasattr(part, 'pretrained_tables')
        for name, table in part.pretrained_tables().items()
    }


def adapt(weights: Weights, needs: Needs) -> tuple[Weights, LoadReport]:
    """Choose the weights to copy into a model, and report the outcome.

    Position tables of a different pretraining size are converted over their grids, which are
    square.
    """
    own, optional, tables = needs
    ready: Weights = {}
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
        elif key in optional and key not in tables:
            # Another number of classes, or a custom module.
            report.unused.append(key)
            report.new.append(key)
        elif (resized := _resize(tables.get(key), weights[key], target)) is not None:
            report.resized[key] = shapes
            ready[key] = resized
        else:
            report.mismatched[key] = shapes
    return ready, report


def _resize(kind: Table | None, table: Tensor, target: Tensor) -> Tensor | None:
    """Convert a position table to a different pretraining size; None for anything else."""
    if kind is None or table.dim() != kind.dims or target.dim() != kind.dims:
        return None
    class_tokens = 0
    if kind.has_class_token and side_of_square(table.shape[1]) is None:
        class_tokens = 1
    shapes = table.shape, target.shape
    others = set(range(kind.dims)).difference(kind.grid_axes)
    sides = [kind.side(shape[axis] - class_tokens) for axis in kind.grid_axes for shape in shapes]
    if None in sides or any(table.shape[axis] != target.shape[axis] for axis in others):
        return None
    return kind.resize(table.float(), *((side, side) for side in sides))


def not_finite(weights: Mapping[str, Tensor]) -> list[str]:
    """Keys of the weights that contain NaN or infinity; those on the meta device have no values."""
    return [key for key, w in weights.items() if not w.is_meta and not w.isfinite().all()]


def check_finite(weights: Mapping[str, Tensor], source: str) -> None:
    """Raise a CheckpointError that names the weights with NaN or infinity, if there are any."""
    if bad := not_finite(weights):
        raise CheckpointError(
            f'{source}: {len(bad)} weights contain NaN or infinity: {first_few(bad)}. '
            'The run that wrote it had failed; use an earlier checkpoint'
        )
