"""Batch normalisation chosen by an MM-style ``norm_cfg``."""

from torch import nn

_TYPES = {'BN': nn.BatchNorm2d, 'SyncBN': nn.SyncBatchNorm}


def build_norm(norm_cfg: dict, channels: int) -> nn.Module:
    """Build the normalisation of a map with ``channels`` channels.

    The same dict as mmcv's ``norm_cfg``, without needing mmcv: ``type`` is 'BN' or 'SyncBN',
    ``requires_grad=False`` freezes scale and shift, all else (``eps``, ``momentum``, ...) goes to
    the layer.

    Raises:
        ValueError: if ``type`` is another one; the published checkpoints hold BatchNorm statistics.
    """
    options = dict(norm_cfg)
    name = options.pop('type', None)
    requires_grad = options.pop('requires_grad', True)
    if name not in _TYPES:
        raise ValueError(f'norm_cfg type {name!r} is unknown: use one of {", ".join(_TYPES)}')
    norm = _TYPES[name](channels, **options)
    for parameter in norm.parameters():
        parameter.requires_grad_(requires_grad)
    return norm


def is_batch_norm(module: nn.Module) -> bool:
    """Whether a module keeps running statistics of its inputs."""
    return isinstance(module, nn.modules.batchnorm._BatchNorm)
