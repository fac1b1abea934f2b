"""Training modes that a flag enables, each as settings in a config."""

import torch
from mmengine.config import Config
from mmengine.device import get_device

from ptnt_mm.engine.config import require_keys
from ptnt_mm.utils.errors import UserError


def use_deterministic(config: Config) -> None:
    """Use deterministic operations, which are slower on a GPU."""
    config.randomness = dict(config.get('randomness') or {}, deterministic=True)


def use_mixed_precision(config: Config) -> None:
    """Compute in bfloat16, or in float16 on an older GPU.

    Raises:
        UserError: if there is no accelerator, or the config has no ``optim_wrapper``.
    """
    require_accelerator('--amp')
    require_keys(config, ('optim_wrapper',))
    # bfloat16 has the range of float32, so nothing overflows; float16 can.
    has_bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    config.optim_wrapper.type = 'AmpOptimWrapper'
    config.optim_wrapper.dtype = 'bfloat16' if has_bfloat16 else 'float16'


def use_sync_bn(config: Config) -> None:
    """Compute BatchNorm over the images of all GPUs.

    Raises:
        UserError: if there is no accelerator.
    """
    require_accelerator('--sync-bn')
    config.sync_bn = 'torch'


def scale_learning_rate(config: Config) -> None:
    """Scale the learning rate with the batch.

    Raises:
        UserError: if the config has no ``base_batch_size`` that the learning rate belongs to.
    """
    if 'base_batch_size' not in (config.get('auto_scale_lr') or {}):
        raise UserError(
            '--auto-scale-lr needs auto_scale_lr=dict(base_batch_size=...) in the config'
        )
    config.auto_scale_lr.enable = True


def require_accelerator(mode: str) -> None:
    """Raise a UserError if torch finds no accelerator for a mode."""
    if get_device() == 'cpu':
        raise UserError(f'{mode} needs an accelerator, and torch finds none: leave it out on a CPU')
