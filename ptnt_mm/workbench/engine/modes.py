"""Modes of training, each as settings in a config."""

import os
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.device import get_device

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.imports import require_packages
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.workbench.config.read import require_keys
from ptnt_mm.workbench.config.settings import type_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.epochs import stretch

LOG_BACKENDS = {
    'tensorboard': 'TensorboardVisBackend',
    'wandb': 'WandbVisBackend',
    'mlflow': 'MLflowVisBackend',
}
"""MMEngine's backends by the package that each needs."""


def use_modes(
    view: ConfigView,
    *,
    epochs: int | None = None,
    amp: bool = False,
    sync_bn: bool = False,
    auto_scale_lr: bool = False,
    log: str | None = None,
    deterministic: bool = False,
) -> None:
    """Write the chosen modes, which are options of ``ptnt train``, into a config.

    Raises:
        UserError: if a mode needs an accelerator, a package or a setting that is missing.
    """
    config = view.config
    if epochs is not None:
        stretch(view, epochs)
    if deterministic:
        config.randomness = dict(view.randomness, deterministic=True)
    if amp:
        use_mixed_precision(config)
    elif type_name(view.optim_wrapper) == 'AmpOptimWrapper':
        require_accelerator('mixed precision (AmpOptimWrapper)')
    if sync_bn:
        require_accelerator('`sync_bn=True`')
        config.sync_bn = 'torch'
    if auto_scale_lr:
        if 'base_batch_size' not in view.auto_scale_lr:
            raise UserError(
                '`auto_scale_lr=True` needs auto_scale_lr=dict(base_batch_size=...) in the config'
            )
        config.auto_scale_lr.enable = True
    if log is not None:
        log_to_package(view, log)


def use_mixed_precision(config: Config) -> None:
    """Compute in bfloat16, or in float16 on an older GPU.

    Raises:
        UserError: if no accelerator is found and the processor does not compute in bfloat16, as
            emulation is slower than float32; or if the config has no ``optim_wrapper``.
    """
    require_keys(config, ('optim_wrapper',))
    if get_device() == 'cpu':
        if not cpu_has_bfloat16():
            needed = 'an accelerator, or a processor that computes in bfloat16'
            raise UserError(f'`amp=True` needs {needed}, and neither was found: omit it')
        for key in _OF_AMP:
            config.optim_wrapper.pop(key, None)
        config.optim_wrapper.type = 'Bfloat16OptimWrapper'
        return
    # bfloat16 has the range of float32, so nothing overflows; float16 can.
    has_bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    config.optim_wrapper.type = 'AmpOptimWrapper'
    config.optim_wrapper.dtype = 'bfloat16' if has_bfloat16 else 'float16'


def cpu_has_bfloat16(processor: Path = Path('/proc/cpuinfo')) -> bool:
    """Whether the processor computes in bfloat16, by the features that Linux lists."""
    try:
        return not _BFLOAT16.isdisjoint(processor.read_text().split())
    except OSError:  # another system
        return False


_OF_AMP = ('dtype', 'loss_scale', 'use_fsdp')  # options of AmpOptimWrapper alone
_BFLOAT16 = {'amx_bf16', 'avx512_bf16', 'bf16'}  # of Intel, of AMD and Intel, of ARM


def log_to_package(view: ConfigView, package: str) -> None:
    """Log losses, metrics and some predictions, in addition to what the config logs.

    Args:
        view: Its config is changed.
        package: A key of ``LOG_BACKENDS``.

    Raises:
        UserError: if the package is unknown or not installed.
    """
    if package not in LOG_BACKENDS:
        raise UserError(f'`log={package}`: {unknown_name("package", package, LOG_BACKENDS)}')
    require_packages(f'`log={package}`', package)
    config, hooks = view.config, view.custom_hooks
    visualizer = config.get('visualizer') or dict(type='Visualizer', name='visualizer')
    backends = visualizer.get('vis_backends') or [dict(type='LocalVisBackend')]
    if LOG_BACKENDS[package] not in map(type_name, backends):
        backend = dict(type=LOG_BACKENDS[package])
        if package == 'mlflow':
            # MMEngine's default, a folder of files, is refused since MLflow 3.
            uri = os.environ.get('MLFLOW_TRACKING_URI', 'sqlite:///mlflow.db')
            backend['tracking_uri'] = uri
        backends = [*backends, backend]
    config.visualizer = dict(visualizer, vis_backends=backends)
    if 'DrawValidationHook' not in map(type_name, hooks):
        config.custom_hooks = [*hooks, dict(type='DrawValidationHook')]


def require_accelerator(mode: str) -> None:
    """Raise a UserError if torch finds no accelerator for a mode."""
    if get_device() == 'cpu':
        raise UserError(f'{mode} needs an accelerator, and torch finds none: omit it on a CPU')
