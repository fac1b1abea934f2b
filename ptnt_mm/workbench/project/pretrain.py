"""Pretrain a backbone on images without labels, for ``ptnt pretrain``."""

import json
import math
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.dist import is_main_process
from torch import Tensor

from ptnt_mm.deploy.decoding import Range, unread_pictures
from ptnt_mm.hooks.run_checkpoints import best_checkpoint
from ptnt_mm.utils.atomic_files import check_new, write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.numbers import require_integer
from ptnt_mm.utils.text import counted
from ptnt_mm.utils.wrappers import unwrapped
from ptnt_mm.version import __version__
from ptnt_mm.weights.files import as_safetensors, saved
from ptnt_mm.weights.names import Weights
from ptnt_mm.weights.networks import plain_settings
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.files import check_written
from ptnt_mm.workbench.config.read import apply_options, read_config
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.config.zoo import config_root
from ptnt_mm.workbench.data.image_files import Images, find_images
from ptnt_mm.workbench.data.labels import LabelledImage, Labels
from ptnt_mm.workbench.data.recognise import skip_damaged, summary
from ptnt_mm.workbench.engine.launcher import is_first_process, number_of_processes
from ptnt_mm.workbench.engine.load_in_range import stated_range
from ptnt_mm.workbench.engine.train import train
from ptnt_mm.workbench.engine.work_dir import find_work_dir
from ptnt_mm.workbench.project.backbone_table import PUBLISHED, is_run
from ptnt_mm.workbench.project.backbones import (
    MeasuredBackbone,
    find_backbone,
    has_available_weights,
)
from ptnt_mm.workbench.project.profile import examine_pixels
from ptnt_mm.workbench.project.recipe import scaled_lr

_SCOPE = 'mmengine'  # needs no host; names of a host's classes begin with its scope
_LEAST_SIZE = 64  # pixels: one token of the coarsest stage of a PyramidTNT
_LEAST_BATCH = 2  # views: the teacher's channels are standardised over a batch
_FEW = 500  # images: a network soon memorises their crops
_WARM_UP = 100  # iterations
_BATCH = 16  # views, that the learning rate of the config is for
_WORKERS = 8  # processes that load images; each prepares several hundred views a second


def pretrain(
    images: Path | str,
    file: Path | str,
    *,
    backbone: str,
    weights: Path | str | None = None,
    teacher: str = 'efficientnet_lite0',
    teacher_weights: Path | str | None = None,
    views: int = 200_000,
    size: int = 128,
    batch: int = 16,
    work_dir: Path | str | None = None,
    resume: Path | str | None = None,
    overwrite: bool = False,
    amp: bool = False,
    compile: bool = False,
    log: str | None = None,
    seed: int | None = None,
    launcher: str = 'none',
    settings: dict[str, Any] | None = None,
    command: tuple[str, ...] = (),
    on_line: Callable[[str], None] = lambda line: None,
) -> Path:
    """Let a backbone imitate a trained network on images without labels.

    Args:
        images: The folder of images; folders in it count too. Only read.
        file: The file to write the backbone's weights to, .safetensors (float16) or .pth.
        settings: Further settings of the config, by dotted keys.
        command: The command line, for the log.
        on_line: Called with each line about images that are few or left out, and values that are
            scaled.
        backbone: The network to train: a name or a registered class with its arguments, as for ptnt
            new.
        weights: Weights of the backbone to start from; by default random initialisation.
        teacher: The network to imitate: a backbone as for ptnt new, or a config or project whose
            backbone is trained.
        teacher_weights: The teacher's weights; by default the published ones, or the best
            checkpoint of its project.
        views: Number of views to train on in total.
        size: Side of a view, at least 64; half of the steps see mosaics of four views.
        batch: Views per step and process, at least 2.
        work_dir: Folder of logs and checkpoints; by default work_dirs/FILE without its suffix.
        resume: Continue from a checkpoint, by default the newest in the work dir ('auto').
        overwrite: If True, delete the output of an earlier run, and replace the file.
        amp: If True, mixed precision, on an accelerator or a CPU that computes in bfloat16.
        compile: If True, compile the backbone: minutes at the start, then up to twice as fast.
        log: Also log losses there: 'tensorboard', 'wandb' or 'mlflow'.
        seed: Seed of every random choice; by default 0.
        launcher: What starts the processes of a distributed run: 'none', 'pytorch', 'slurm' or
            'mpi'.

    Returns:
        The file.

    Raises:
        UserError: if no image can be read, if a backbone or its weights are not available, if the
            file exists, or as for :func:`~ptnt_mm.workbench.engine.train.train`.
    """
    images, file = Path(images), Path(file)
    require_integer('views', views, 1)
    require_integer('size', size, _LEAST_SIZE)
    require_integer('batch', batch, _LEAST_BATCH)
    check_written(file)
    check_new(file, overwrite or resume is not None)
    found = find_images(images)
    student = find_backbone(backbone, weights and str(weights), _SCOPE)
    teacher_settings = find_teacher(teacher, teacher_weights)
    number, value_range, lines = examine(found)
    if number < _FEW:
        few = counted(number, 'image')
        lines.append(f'warning: only {few}; a few thousand varied images work best')
    if is_first_process(launcher):
        for line in lines:
            on_line(line)
    gpus = number_of_processes(launcher)
    config = pretraining_config(student, teacher_settings, images, views, size, batch, gpus)
    config.train_dataloader.dataset.pipeline[0].value_range = value_range
    if compile:
        config.custom_hooks = [*config.custom_hooks, dict(type='CompileHook', dynamic=False)]
    apply_options(config, settings or {})
    value_range = stated_range(ConfigView(config).train)  # options may change it
    runner = train(
        config,
        work_dir or Path('work_dirs', file.stem),
        resume=resume,
        overwrite=overwrite,
        amp=amp,
        log=log,
        seed=seed,
        launcher=launcher,
        command=command,
    )
    if is_main_process():
        card = dict(
            backbone=backbone,
            network=plain_settings(student.settings),
            teacher=teacher,
            images=number,
            views=views,
            size=size,
            command=shlex.join(command),
            ptnt_mm=__version__,
        )
        if value_range is not None:
            card['value_range'] = '{:g} to {:g}'.format(*value_range)
        learned = unwrapped(runner.model).backbone.state_dict()
        write_weights(file, learned, card)
        try:
            find_backbone(backbone, str(file), _SCOPE)
        except CheckpointError:  # mmdet's Swin reads only the names of a whole model
            whole = {f'backbone.{key}': weight for key, weight in learned.items()}
            write_weights(file, whole, card)
    return file


def examine(found: Images) -> tuple[int, Range | None, list[str]]:
    """Decode images, and measure the values of those of more than 8 bits, as ``ptnt new`` does.

    Returns:
        How many can be read; the range of values to load them in, None for that of their type; and
        a line about each kind of remark.

    Raises:
        UserError: if none can be read.
    """
    images = [LabelledImage(found.root / name, size=(0, 0)) for name in found.files]
    labels = Labels(images=images, notes=unread_pictures(found.skipped))
    skip_damaged(labels)
    value_range = examine_pixels(labels)
    lines = [*labels.notes, *summary(labels)]
    if not labels.images:
        raise UserError('\n'.join((f'{found.root} contains no image that can be read:', *lines)))
    return len(labels.images), value_range, lines


def pretraining_config(
    student: MeasuredBackbone,
    teacher: dict,
    images: Path,
    views: int,
    size: int,
    batch: int,
    gpus: int = 1,
) -> Config:
    """The config of a pretraining, from ``configs/_base_/pretrain.py``.

    Args:
        student: The backbone to train.
        teacher: Settings of a teacher.
        images: The folder of images.
        views: Images seen in all; the last step is completed.
        size: Side of a view in pixels.
        batch: Views in a step of one process.
        gpus: The number of processes.
    """
    config = read_config(config_root() / '_base_' / 'pretrain.py')
    iterations = math.ceil(views / (batch * gpus))
    # GroupNorm is for detectors, whose steps have few images; here, a step has many.
    config.model.update(backbone=student.settings, teacher=teacher, size=size)
    config.model.data_preprocessor.update(mean=student.mean, std=student.std)
    loader = config.train_dataloader
    loader.batch_size = batch
    loader.num_workers = max(min((os.cpu_count() or 1) // (2 * gpus), _WORKERS), 1)
    loader.dataset.data_root = str(images)
    loader.dataset.pipeline[1].size = size
    config.train_cfg.max_iters = iterations
    config.optim_wrapper.optimizer.lr = scaled_lr(
        config.optim_wrapper.optimizer.lr, batch * gpus, _BATCH
    )
    config.auto_scale_lr = dict(base_batch_size=batch * gpus)
    checkpoint = config.default_hooks.checkpoint
    checkpoint.interval = min(checkpoint.interval, iterations)
    warm_up, cosine = config.param_scheduler
    warm_up.end = max(min(_WARM_UP, iterations // 10), 2)
    cosine.T_max = cosine.end = iterations
    return config


def find_teacher(name: str, weights: Path | str | None = None) -> dict:
    """The settings of a teacher.

    Args:
        name: A backbone as for ``ptnt new``; or a config or a project, whose backbone teaches.
        weights: Its file; by default the published weights, or the best checkpoint of the config's
            work dir.

    Raises:
        UserError: if there is no such network, or its weights are not available.
    """
    if is_run(name, weights):
        return _teacher_of_run(name, weights)
    if weights is None and not has_available_weights(name):
        raise UserError(
            f'`teacher={name}`: its weights are not on this machine and cannot be downloaded: pass '
            'a file with `teacher_weights`, or choose another teacher'
        )
    found = find_backbone(name, PUBLISHED if weights is None else str(weights), _SCOPE)
    scale = dict(mean=found.mean, std=found.std)
    if found.settings['type'] == 'TimmFeatures':  # timm's classifiers have logits, too
        init_cfg = found.settings['init_cfg']
        return dict(type='TimmTeacher', model=found.settings['model'], init_cfg=init_cfg, **scale)
    return dict(type='BackboneTeacher', backbone=found.settings, **scale)


def _teacher_of_run(config: str, weights: Path | str | None) -> dict:
    """The backbone of a trained model."""
    view = ConfigView(read_config(config))
    weights = weights or best_checkpoint(find_work_dir(view.config))
    if weights is None:
        raise UserError(
            f'`teacher={config}`: its work dir has no checkpoint: train it first, or pass a file '
            'with `teacher_weights`'
        )
    scale = view.preprocessor
    to_rgb = view.host.to_rgb if view.host else 'bgr_to_rgb'
    if not scale.get(to_rgb) or scale.get('mean') is None:
        raise UserError(
            f'`teacher={config}`: its data_preprocessor is {dict(scale)}: expected {to_rgb}=True '
            'with a mean and a std'
        )
    init_cfg = dict(type='Pretrained', checkpoint=str(weights), prefix='backbone.')
    return dict(
        type='BackboneTeacher',
        backbone=dict(view.backbone, init_cfg=init_cfg, _scope_=view.scope),
        mean=list(scale['mean']),
        std=list(scale['std']),
    )


def write_weights(file: Path, weights: Weights, card: dict[str, Any]) -> None:
    """Write a backbone's weights with a card of how they came about.

    A .safetensors file has float16, half the size, but for tensors with values beyond its range.
    """
    weights = {key: weight.detach().cpu().contiguous() for key, weight in weights.items()}
    if file.suffix == '.pth':
        write_atomically(file, saved(dict(state_dict=weights, card=card)))
        return
    half = {key: _in_half(weight) for key, weight in weights.items()}
    write_atomically(file, as_safetensors(half, dict(card=json.dumps(card))))


def _in_half(weight: Tensor) -> Tensor:
    """A tensor in float16 if it is in its range; a count stays as it is."""
    half = weight.half() if weight.is_floating_point() else weight
    return half if half.isfinite().all() else weight
