"""MMEngine's checkpoint loading, made safe and loud.

Safe: whatever MMEngine loads, for ``init_cfg``, ``load_from``, resume, test or an inferencer, goes
through our reader, which runs nothing of the file. The config that MMEngine stores as Python text
is dropped on the way: ``Runner.resume`` and the inferencers would execute it.

Loud: MMEngine loads with ``strict=False`` and warns. :class:`CheckpointGuardHook` raises before a
model is trained or tested with weights that are not the checkpoint's.
"""

import functools
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmengine.hooks import Hook
from mmengine.model import BaseTTAModel, is_model_wrapper
from mmengine.optim import OptimWrapper, OptimWrapperDict
from mmengine.runner import checkpoint as mmengine_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader
from torch import nn

from ptnt_mm.checkpoints.errors import CheckpointError
from ptnt_mm.checkpoints.read import (
    check_described,
    read,
    reading_safely,
    refuse_forced_unsafe_loading,
)
from ptnt_mm.models.pretrained import (
    LoadReport,
    Weights,
    adapt,
    check_finite,
    identify,
    looks_like,
    may_lack,
    only_tensors,
    split_prefix,
)
from ptnt_mm.registry import HOOKS


class _WithoutConfig(dict):
    """What a checkpoint says about its training; asking for the config says why it is gone."""

    def __init__(self, entry: dict):
        super().__init__(item for item in entry.items() if item[0] not in ('cfg', 'config'))
        if 'runtime_info' in self:
            self['runtime_info'] = _WithoutConfig(self['runtime_info'])

    def __missing__(self, key: Any) -> Any:
        if key in ('cfg', 'config'):
            raise CheckpointError(
                'the config that a checkpoint stores is Python, which could run anything, and is '
                'never executed here. Give the config yourself: '
                "DetInferencer(model='my_config.py', weights='my_checkpoint.pth')"
            )
        raise KeyError(key)

    def __reduce__(self) -> tuple:
        """Be saved as what any reader of checkpoints knows."""
        return OrderedDict, (), None, None, iter(self.items())


def without_config(checkpoint: Any) -> Any:
    """Drop the stored config text of a checkpoint; its other entries are shared, not copied.

    Raises:
        CheckpointError: What should describe the training is no dict.
    """
    if not isinstance(checkpoint, dict):
        return checkpoint
    check_described(checkpoint)
    described = {'meta', 'message_hub'} & checkpoint.keys()
    clean = {name: _WithoutConfig(checkpoint[name]) for name in described}
    return {**checkpoint, **clean} if clean else checkpoint


def make_loading_safe() -> None:
    """Put our reader under all that MMEngine loads in this process.

    Importing this module does it; doing it again is harmless.
    """
    # What torchvision://, open-mmlab:// and mmcls:// look up goes through it; MMEngine's own asks
    # torch.hub, which runs what it finds in its folder.
    mmengine_checkpoint.load_from_http = load_from_file
    CheckpointLoader.register_scheme(['', 'http://', 'https://'], load_from_file, force=True)
    if not hasattr(CheckpointLoader.load_checkpoint, '__wrapped__'):
        CheckpointLoader.load_checkpoint = _made_safe(CheckpointLoader.load_checkpoint)


def load_from_file(filename: str, map_location: Any = 'cpu') -> dict:
    """Read a file or an http(s) address for MMEngine.

    Raises:
        CheckpointError: As ``ptnt_mm.checkpoints.read.read``.
    """
    return read(filename, map_location)


def load_whole(model: nn.Module, filename: str) -> dict:
    """Load a model's weights, every one of them, or raise and change nothing.

    Args:
        model: Gets the weights.
        filename: A file or an address, as MMEngine takes them.

    Returns:
        What the checkpoint tells about its training, without the config; empty if it tells nothing.

    Raises:
        CheckpointError: It cannot be read, does not fit the model, or holds NaN or infinity.
    """
    checkpoint = CheckpointLoader.load_checkpoint(filename, 'cpu', logger='silent')
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
        """Check a checkpoint that was read and not yet copied.

        Raises:
            CheckpointError: It does not fit, or holds NaN or infinity.
        """
        checkpoint.update(without_config(checkpoint))
        model = _unwrapped(runner.model)
        if runner._resume:
            _keep_to_work_dir(runner, checkpoint)
        training = isinstance(runner.optim_wrapper, (OptimWrapper, OptimWrapperDict))
        if training and not runner._resume:
            _fit_backbone(checkpoint, model)
        else:
            _require_all(checkpoint, model)


def _require_all(checkpoint: dict, model: nn.Module) -> None:
    """Raise unless the checkpoint has each weight of the model in its shape."""
    own = only_tensors(model.state_dict())
    # Older checkpoints lack these counters; MMEngine lets them be, too.
    counters = [key for key in own if key.endswith('num_batches_tracked')]
    weights = _bare(_state_dict(checkpoint))
    ready, report = adapt(weights, own, counters)
    report.mismatched = {**report.resized, **report.mismatched}
    _raise_unless_fitting(report, weights, own)
    check_finite(ready, 'the checkpoint')


def _fit_backbone(checkpoint: dict, model: nn.Module) -> None:
    """Raise unless the checkpoint has the model's backbone; convert its tables in place."""
    own = {k: w for k, w in only_tensors(model.state_dict()).items() if k.startswith('backbone.')}
    state = _state_dict(checkpoint)
    weights = _bare(state)
    ready, report = adapt(weights, own, may_lack(model))
    _raise_unless_fitting(report, weights, own)
    check_finite(ready, 'the checkpoint')
    for key in state:
        if key.removeprefix('module.') in report.resized:
            state[key] = ready[key.removeprefix('module.')]


def _raise_unless_fitting(report: LoadReport, weights: Weights, own: Weights) -> None:
    if problems := report.problems():
        raise CheckpointError(
            f'the checkpoint does not fit the model: it {" and ".join(problems)}. '
            f'{_likely_cause(report, weights, own)}'
        )


def _likely_cause(report: LoadReport, weights: Weights, own: Weights) -> str:
    """What the user most likely did, and what to do about it."""
    trunk, own_trunk = split_prefix(weights)[0], split_prefix(own)[0]
    name, (arch, size), (own_arch, own_size) = (
        looks_like(trunk),
        identify(trunk),
        identify(own_trunk),
    )
    nothing = not report.loaded and not report.mismatched
    wrong = [*report.missing, *report.mismatched]
    in_heads = report.mismatched and not any(k.startswith(('backbone.', 'neck.')) for k in wrong)
    for is_so, cause in (
        (
            nothing and name.startswith('PyramidTNT'),
            'It holds a backbone alone: give it to tools/train.py as --pretrained, or as '
            "model.backbone.init_cfg=dict(type='Pretrained', checkpoint=...)",
        ),
        (nothing, f'It looks like {name}: give a checkpoint of this model'),
        (
            arch != own_arch,
            f'Its backbone is {name}, the model has {looks_like(own_trunk)}: give a checkpoint of '
            'this model, or set model.backbone',
        ),
        (
            size != own_size,
            f'Its position tables belong to images of {size} pixels, the model to {own_size}: '
            f'set model.backbone.pretrain_img_size={size}',
        ),
        (
            in_heads,
            'Its heads probably predict another number of classes: set num_classes to its own',
        ),
    ):
        if is_so:
            return cause
    return 'It was trained with another config: give that config, or another checkpoint'


def _keep_to_work_dir(runner: Any, checkpoint: dict) -> None:
    """Forget files outside the work_dir that a checkpoint claims as its own.

    MMEngine deletes the file or folder that a resumed checkpoint calls its best one as soon as
    there is a better one, and those that it says to have kept.
    """
    info = checkpoint.get('message_hub', {}).get('runtime_info', {})
    work_dir = Path(runner.work_dir).resolve()
    for key, value in list(info.items()):
        if str(key).startswith('best_ckpt'):
            ours = isinstance(value, str) and Path(value).resolve().parent == work_dir
        elif key == 'keep_ckpt_ids':
            ours = isinstance(value, list) and all(type(step) is int for step in value)
        else:
            continue
        if not ours:
            del info[key]
            runner.logger.warning(f'{key} of the checkpoint is not in {work_dir}: forgotten')


def _made_safe(load_checkpoint: Callable) -> Callable:
    """Wrap MMEngine's one way to a checkpoint, whatever loader it takes for an address."""

    @functools.wraps(load_checkpoint)
    def load(filename: str, *args: Any, **kwargs: Any) -> Any:
        refuse_forced_unsafe_loading()
        try:
            with reading_safely():
                return without_config(load_checkpoint(filename, *args, **kwargs))
        except CheckpointError as error:
            named = str(error).startswith(str(filename))
            raise CheckpointError(f'{error}' if named else f'{filename}: {error}') from error

    return staticmethod(load)


def _unwrapped(model: nn.Module) -> nn.Module:
    """The model inside DistributedDataParallel or test-time augmentation."""
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.module
    return model


def _state_dict(checkpoint: dict) -> dict:
    """The weights that MMEngine will copy."""
    state = checkpoint.get('state_dict', checkpoint)
    if not only_tensors(state):
        raise CheckpointError('the checkpoint holds no weights')
    return state


def _bare(state: dict) -> Weights:
    """Its weights without the prefix that MMEngine takes off."""
    return {key.removeprefix('module.'): w for key, w in only_tensors(state).items()}


make_loading_safe()
