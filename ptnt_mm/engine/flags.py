"""The flags of ``tools/train.py``, brought into a config."""

import argparse
from pathlib import Path

import torch
from mmengine.config import Config, ConfigDict
from mmengine.device import get_device

from ptnt_mm.engine.start import check_start, froze_stem, use_pretrained, use_resume
from ptnt_mm.utils.errors import UserError


def apply_flags(args: argparse.Namespace, config: Config, work_dir: Path) -> ConfigDict:
    """Bring the flags into the config.

    Returns:
        The settings of the run that is continued; none if none is.

    Raises:
        UserError: if a flag asks for what is not there.
    """
    stored = ConfigDict()
    _choose_randomness(args, config)
    if args.amp:
        _use_mixed_precision(config)
    if config.optim_wrapper.get('type') == 'AmpOptimWrapper':
        _require_accelerator('mixed precision (--amp, AmpOptimWrapper)')
    if args.sync_bn:
        _require_accelerator('--sync-bn')
        config.sync_bn = 'torch'
    if args.auto_scale_lr:
        if 'base_batch_size' not in (config.get('auto_scale_lr') or {}):
            raise UserError(
                '--auto-scale-lr needs auto_scale_lr=dict(base_batch_size=...) in the config'
            )
        config.auto_scale_lr.enable = True
    if args.load_from is not None:
        config.load_from = args.load_from
    if args.resume is not None:
        stored = use_resume(config, args.resume, work_dir)
        _keep_seed(args, config)
    if args.pretrained is not None:
        _use_pretrained(config, args.pretrained, stored)
    check_start(config)
    return stored


def _use_pretrained(config: Config, path: str, stored: ConfigDict) -> None:
    """Start from a backbone's weights, unless a training that began so goes on.

    Raises:
        UserError: if the weights would not be used: others take their place.
    """
    if config.get('resume'):
        # The command that is repeated with --resume may well have begun with it.
        if stored and not froze_stem(stored):
            raise UserError(
                f'--pretrained {path}: the training that --resume continues began without it, and '
                'its checkpoint holds all weights: leave --pretrained out'
            )
    elif config.get('load_from'):
        raise UserError(
            f'--pretrained {path}: the whole model starts from {config.load_from}, which holds its '
            'backbone, too: leave --pretrained or --load-from (load_from in the config) out'
        )
    else:
        use_pretrained(config, path)


def _choose_randomness(args: argparse.Namespace, config: Config) -> None:
    asked = dict(seed=args.seed, deterministic=args.deterministic or None)
    asked = {key: value for key, value in asked.items() if value is not None}
    if asked:
        config.randomness = {**(config.get('randomness') or {}), **asked}


def _keep_seed(args: argparse.Namespace, config: Config) -> None:
    """Refuse to change the seed of a training on its way.

    Raises:
        UserError: if another one is asked for.
    """
    seed = (config.get('randomness') or {}).get('seed')
    if args.seed not in (None, seed):
        raise UserError(
            f'--seed {args.seed}: the training that --resume continues has seed {seed}: leave '
            '--seed out'
        )


def _use_mixed_precision(config: Config) -> None:
    _require_accelerator('--amp')
    # bfloat16 has the range of float32: nothing overflows, as it can in float16.
    has_bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    config.optim_wrapper.type = 'AmpOptimWrapper'
    config.optim_wrapper.dtype = 'bfloat16' if has_bfloat16 else 'float16'


def _require_accelerator(what: str) -> None:
    if get_device() == 'cpu':
        raise UserError(f'{what} needs an accelerator, and torch finds none: leave it out on a CPU')
