"""Make MMEngine's checkpoint loading safe and loud.

Safe: our reader loads every checkpoint for MMEngine (``init_cfg``, ``load_from``, resume, test,
inferencers) without running code in it. The config that MMEngine stores as Python text is dropped
on the way: ``Runner.resume`` and the inferencers would execute it.

Loud: MMEngine only warns when weights do not fit. :class:`CheckpointGuardHook` raises an error.
"""

import copy
import functools
from collections import OrderedDict
from collections.abc import Collection
from pathlib import Path
from typing import Any

from mmengine.hooks import Hook
from mmengine.model import BaseTTAModel, is_model_wrapper
from mmengine.optim import OptimWrapper
from mmengine.runner import checkpoint as mmengine_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader
from torch import nn

from ptnt_mm.checkpoints.read import (
    check_described,
    read_checkpoint,
    reading_safely,
    refuse_forced_unsafe_loading,
)
from ptnt_mm.checkpoints.refusal import CheckpointError
from ptnt_mm.models.weights import pretrained
from ptnt_mm.models.weights.identity import identify, looks_like
from ptnt_mm.models.weights.load_report import LoadReport
from ptnt_mm.models.weights.names import Weights, as_classifier
from ptnt_mm.registry import HOOKS

_load_checkpoint = CheckpointLoader.load_checkpoint


class _WithoutConfig(dict):
    """Metadata of a checkpoint; accessing the config raises an error that explains its removal."""

    def __init__(self, entry: dict):
        super().__init__(item for item in entry.items() if item[0] not in ('cfg', 'config'))
        if isinstance(self.get('runtime_info'), dict):
            self['runtime_info'] = _WithoutConfig(self['runtime_info'])

    def __missing__(self, key: Any) -> Any:
        if key in ('cfg', 'config'):
            raise CheckpointError(
                'the config that a checkpoint stores is Python, which could run anything, and is '
                'never executed here. Pass a config yourself: '
                "DetInferencer(model='my_config.py', weights='my_checkpoint.pth')"
            )
        raise KeyError(key)

    def __reduce__(self) -> tuple:
        """Pickle as a plain dict, which any reader of checkpoints supports."""
        return OrderedDict, (), None, None, iter(self.items())


def without_config(checkpoint: Any) -> Any:
    """Drop the stored config text of a checkpoint; its other entries are shared, not copied.

    Raises:
        CheckpointError: as :func:`check_described`.
    """
    if not isinstance(checkpoint, dict):
        return checkpoint
    check_described(checkpoint)
    described = {'meta', 'message_hub'} & checkpoint.keys()
    clean = {name: _WithoutConfig(checkpoint[name]) for name in described}
    return {**checkpoint, **clean} if clean else checkpoint


def make_loading_safe() -> None:
    """Make MMEngine load every checkpoint in this process with our reader.

    Calling it again is harmless.
    """
    # torchvision://, open-mmlab:// and mmcls:// addresses are resolved by it; MMEngine's own uses
    # torch.hub, which runs code from its cache folder.
    mmengine_checkpoint.load_from_http = load_from_file
    CheckpointLoader.register_scheme(['', 'http://', 'https://'], load_from_file, force=True)
    CheckpointLoader.load_checkpoint = staticmethod(_load_safely)


def require_safe_loading() -> None:
    """Load safely from here on, even with ``PTNT_SAFE_LOADING=0``.

    Raises:
        CheckpointError: if an environment variable makes torch load unsafely.
    """
    refuse_forced_unsafe_loading()
    make_loading_safe()


def load_from_file(filename: str, map_location: Any = 'cpu') -> dict:
    """Read a file or an http(s) address; MMEngine logs the word "file" from this name."""
    return read_checkpoint(filename, map_location)


@functools.wraps(_load_checkpoint)
def _load_safely(filename: str, *args: Any, **kwargs: Any) -> Any:
    """Loader that MMEngine calls for every checkpoint address."""
    try:
        with reading_safely():
            return without_config(_load_checkpoint(filename, *args, **kwargs))
    except CheckpointError as error:
        named = str(error).startswith(str(filename))
        raise CheckpointError(f'{error}' if named else f'{filename}: {error}') from error


def load_whole(model: nn.Module, filename: str) -> dict:
    """Load every weight of a model from a file or an address, or raise and change nothing.

    Returns:
        The checkpoint's metadata without the config; empty if there is none.

    Raises:
        CheckpointError: if it cannot be read, does not fit the model, or contains NaN or infinity.
    """
    require_safe_loading()
    checkpoint = CheckpointLoader.load_checkpoint(filename, 'cpu', logger='silent')
    _translate_classifier(checkpoint, model)
    _use_own_names(checkpoint)
    _require_all(checkpoint, model)
    mmengine_checkpoint._load_checkpoint_to_model(model, checkpoint)
    return checkpoint.get('meta') or {}


@HOOKS.register_module()
class CheckpointGuardHook(Hook):
    """Refuse a checkpoint that does not fit the model, before any weight is copied.

    To resume and to test, every weight of the model must be in the checkpoint with its shape. To
    fine-tune from one (``load_from``), the backbone's must; position tables of another pretraining
    size are converted, and heads and necks may differ.
    """

    # EMAHook (NORMAL) copies from the checkpoint: the check comes first.
    priority = 'HIGH'

    def after_load_checkpoint(self, runner: Any, checkpoint: dict) -> None:
        """Raise a CheckpointError unless the loaded weights can be copied into the model."""
        checkpoint.update(without_config(checkpoint))
        model = runner.model  # or a wrapper: DistributedDataParallel, test-time augmentation
        while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
            model = model.module
        if runner._resume:
            _keep_to_work_dir(runner, checkpoint)
        _translate_classifier(checkpoint, model)
        _use_own_names(checkpoint)
        if isinstance(runner.optim_wrapper, OptimWrapper) and not runner._resume:
            _require_backbone(checkpoint, model)
        else:
            _require_all(checkpoint, model)


def _translate_classifier(checkpoint: dict, model: nn.Module) -> None:
    """Convert an authors' or timm's classifier to mmpretrain's names, in place."""
    own = model.state_dict()
    if 'head.fc.weight' in own:
        weights, _ = pretrained.find_state_dict(checkpoint)
        weights = {key.removeprefix('module.'): weight for key, weight in weights.items()}
        if 'head.weight' in weights:
            checkpoint['state_dict'] = as_classifier(weights, own)


def _use_own_names(checkpoint: dict) -> None:
    """Put weights, including bare ones, under the names that EMA hooks expect."""
    weights = checkpoint.setdefault('state_dict', copy.copy(checkpoint))
    for key in pretrained.only_tensors(weights):
        weights[key.removeprefix('module.')] = weights.pop(key)


def _require_all(checkpoint: dict, model: nn.Module) -> None:
    """Raise unless the checkpoint has each weight of the model in its shape."""
    own = model.state_dict()
    # Older checkpoints lack these counters, and MMEngine does not need them.
    counters = [key for key in own if key.endswith('num_batches_tracked')]
    _require_fit(checkpoint, own, counters, tables={})


def _require_backbone(checkpoint: dict, model: nn.Module) -> None:
    """Raise unless the checkpoint has the model's backbone; convert its tables in place."""
    own = {key: w for key, w in model.state_dict().items() if key.startswith('backbone.')}
    _require_fit(checkpoint, own, pretrained.may_lack(model), pretrained.TABLES)


def _require_fit(checkpoint: dict, own: dict, optional: Collection[str], tables: dict) -> None:
    own = pretrained.only_tensors(own)
    weights = pretrained.only_tensors(checkpoint['state_dict'])
    if not weights:
        raise CheckpointError('the checkpoint contains no weights')
    ready, report = pretrained.adapt(weights, own, optional, tables)
    if problems := report.problems():
        raise CheckpointError(
            f'the checkpoint does not fit the model: it {" and ".join(problems)}. '
            f'{_likely_cause(report, weights, own)}'
        )
    pretrained.check_finite(ready, 'the checkpoint')
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
                'It contains only a backbone: give it to ptnt train as --pretrained, or as '
                "model.backbone.init_cfg=dict(type='Pretrained', checkpoint=...)"
            )
        return f'It looks like {looks_like(trunk)}: give a checkpoint of this model'
    if found[:2] != wanted[:2]:
        return (
            f'Its backbone is {looks_like(trunk)}, the model has {looks_like(own_trunk)}: give a '
            'checkpoint of this model, or set model.backbone'
        )
    if found.size != wanted.size:
        return (
            f'Its position tables belong to images of {found.size} pixels, the model to '
            f'{wanted.size}: set model.backbone.pretrain_img_size={found.size}'
        )
    wrong = [*report.missing, *report.mismatched]
    if report.mismatched and not any(key.startswith(('backbone.', 'neck.')) for key in wrong):
        return 'Its heads probably predict another number of classes: set num_classes to match'
    return 'It was trained with another config: give that config, or another checkpoint'


def _keep_to_work_dir(runner: Any, checkpoint: dict) -> None:
    """Drop a checkpoint's references to files outside the work_dir, which MMEngine would delete.

    It deletes the previous best checkpoint, and outdated ones.
    """
    info = checkpoint.get('message_hub', {}).get('runtime_info', {})
    work_dir = Path(runner.work_dir).resolve()
    for key in [key for key in info if str(key).startswith('best_ckpt')]:
        if Path(str(info[key])).resolve().parent != work_dir:
            del info[key]
            runner.logger.warning(f'{key} of the checkpoint is not in {work_dir}: ignored')
    steps = info.get('keep_ckpt_ids', [])
    if not isinstance(steps, list) or not all(type(step) is int for step in steps):
        del info['keep_ckpt_ids']
