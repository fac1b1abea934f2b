"""Load a checkpoint only if its weights fit the model; MMEngine only warns if they do not."""

import copy
from collections.abc import Collection

from mmengine.runner import checkpoint as mmengine_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader
from torch import nn

from ptnt_mm.weights import pretrained
from ptnt_mm.weights.identity import identify, looks_like
from ptnt_mm.weights.load_report import LoadReport
from ptnt_mm.weights.names import Weights, as_classifier
from ptnt_mm.weights.reader.refusal import CheckpointError
from ptnt_mm.weights.safe_loading import require_safe_loading


def load_strictly(model: nn.Module, filename: str) -> dict:
    """Load every weight of a model from a file or an address, or raise and change nothing.

    Returns:
        The checkpoint's metadata without the config; empty if there is none.

    Raises:
        CheckpointError: if it cannot be read, does not fit the model, or contains NaN or infinity.
    """
    require_safe_loading()
    checkpoint = CheckpointLoader.load_checkpoint(filename, 'cpu', logger='silent')
    require_all_weights(checkpoint, model, filename)
    mmengine_checkpoint._load_checkpoint_to_model(model, checkpoint)
    return checkpoint.get('meta') or {}


def require_all_weights(checkpoint: dict, model: nn.Module, source: str) -> None:
    """Check that a checkpoint has each weight of a model in its shape.

    Args:
        checkpoint: Its weights get the names that the model and EMA hooks expect, in place.
        model: Without a wrapper such as DistributedDataParallel.
        source: The checkpoint's file or address, for errors.

    Raises:
        CheckpointError: if a weight is missing, has another shape, or contains NaN or infinity.
    """
    _use_own_names(checkpoint, model)
    own = model.state_dict()
    # Older checkpoints lack these counters, and MMEngine does not need them.
    counters = [key for key in own if key.endswith('num_batches_tracked')]
    _require_fit(checkpoint, source, own, counters, tables={})


def require_backbone(checkpoint: dict, model: nn.Module, source: str) -> None:
    """Check as :func:`require_all_weights`, but only the backbone.

    Its position tables are converted in place if they belong to a different pretraining size.
    """
    _use_own_names(checkpoint, model)
    own = {key: w for key, w in model.state_dict().items() if key.startswith('backbone.')}
    _require_fit(checkpoint, source, own, pretrained.may_lack(model), pretrained.find_tables(model))


def _use_own_names(checkpoint: dict, model: nn.Module) -> None:
    """Rename weights in place.

    An authors' or timm's classifier gets mmpretrain's names, and all weights, including bare ones,
    those that EMA hooks expect.
    """
    own = model.state_dict()
    if 'head.fc.weight' in own:
        weights, _ = pretrained.find_state_dict(checkpoint)
        weights = {key.removeprefix('module.'): weight for key, weight in weights.items()}
        if 'head.weight' in weights:
            checkpoint['state_dict'] = as_classifier(weights, own)
    weights = checkpoint.setdefault('state_dict', copy.copy(checkpoint))
    for key in pretrained.only_tensors(weights):
        weights[key.removeprefix('module.')] = weights.pop(key)


def _require_fit(
    checkpoint: dict, source: str, own: dict, optional: Collection[str], tables: dict
) -> None:
    own = pretrained.only_tensors(own)
    weights = pretrained.only_tensors(checkpoint['state_dict'])
    if not weights:
        raise CheckpointError(f'{source} contains no weights')
    ready, report = pretrained.adapt(weights, own, optional, tables)
    if problems := report.problems():
        raise CheckpointError(
            f'{source} does not fit the model: it {" and ".join(problems)}. '
            f'{_likely_cause(report, weights, own)}'
        )
    pretrained.check_finite(ready, source)
    for key in report.resized:
        weights[key].data = ready[key]


def _likely_cause(report: LoadReport, weights: Weights, own: Weights) -> str:
    """The most likely mistake, and how to correct it."""
    trunk, own_trunk = (pretrained.split_prefix(every)[0] for every in (weights, own))
    found, wanted = identify(trunk), identify(own_trunk)
    if not report.loaded and not report.mismatched:
        alone = not any(key.startswith('backbone.') for key in weights)
        if alone and found.kind:
            return (
                'It contains only a backbone: pass it to ptnt train as `pretrained`, or set '
                "model.backbone.init_cfg=dict(type='Pretrained', checkpoint=...)"
            )
        return f'It looks like {looks_like(trunk)}: use a checkpoint of this model'
    if found[:2] != wanted[:2]:
        return (
            f'Its backbone is {looks_like(trunk)}, the model has {looks_like(own_trunk)}: use a '
            'checkpoint of this model, or set model.backbone'
        )
    if found.size != wanted.size:
        return (
            f'Its position tables belong to images of {found.size} pixels, the model to '
            f'{wanted.size}: set model.backbone.pretrain_img_size={found.size}'
        )
    wrong = [*report.missing, *report.mismatched]
    if report.mismatched and not any(key.startswith(('backbone.', 'neck.')) for key in wrong):
        return 'Its heads probably predict a different number of classes: set num_classes to match'
    return 'It was trained with a different config: use that config, or a different checkpoint'
