"""Normalisation chosen by an MM-style ``norm_cfg``, and layer norms of words and maps."""

from collections.abc import Mapping

from torch import Tensor, nn


def _group_norm(channels: int, num_groups: int = 0, eps: float = 1e-5) -> nn.GroupNorm:
    if num_groups < 1 or channels % num_groups:
        raise ValueError(
            f"norm_cfg type 'GN': num_groups is {num_groups}, expected a divisor of the {channels} "
            'channels, such as 1'
        )
    return nn.GroupNorm(num_groups, channels, eps)


_TYPES = {'BN': nn.BatchNorm2d, 'SyncBN': nn.SyncBatchNorm, 'GN': _group_norm}


def build_norm(norm_cfg: dict, channels: int) -> nn.Module:
    """Build the normalisation of a map with ``channels`` channels.

    The same dict as mmcv's ``norm_cfg``, without needing mmcv: ``type`` is 'BN', 'SyncBN' or 'GN'
    (with ``num_groups``), ``requires_grad=False`` freezes scale and shift, all else (``eps``,
    ``momentum``, ...) goes to the layer. The published checkpoints contain BatchNorm statistics, so
    'GN' is for training from random initialisation.

    Raises:
        ValueError: for any other ``type``, for anything but a dict, or for groups that do not
            divide the channels.
    """
    if not isinstance(norm_cfg, Mapping):
        raise ValueError(f"norm_cfg is {norm_cfg!r}: expected a dict such as dict(type='BN')")
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


class SentenceNorm(nn.LayerNorm):
    """Normalise all words of a sentence together, as PyramidTNT does."""

    def __init__(self, words: int, dim: int):
        super().__init__(words * dim)

    def forward(self, inner: Tensor) -> Tensor:
        """(B*N, m, c) -> (B*N, m, c)."""
        return super().forward(inner.flatten(1)).view_as(inner)


class WordNorm(nn.LayerNorm):
    """Normalise each word separately, as TNT does: (B*N, m, c) -> (B*N, m, c)."""

    def __init__(self, words: int, dim: int):
        super().__init__(dim)


class OutputNorm(nn.LayerNorm):
    """Normalise the tokens of a map that a backbone returns (ours): no published file has it."""

    pretrained_may_lack = ('weight', 'bias')


class MapNorm(nn.LayerNorm):
    """Normalise the channels of each place of a map."""

    def forward(self, feature: Tensor) -> Tensor:
        """(B, C, h, w) -> (B, C, h, w), in channels-last order."""
        return super().forward(feature.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
