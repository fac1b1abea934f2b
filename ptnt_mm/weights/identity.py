"""Recognise the network that weights belong to by their names and shapes."""

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import torch

from ptnt_mm.utils.text import first_few
from ptnt_mm.weights.names import Weights, by_our_names
from ptnt_mm.weights.networks import Network, family, side_of_square

_FIRST_NORM = re.compile(r'(?:stages\.(\d)\.)?blocks\.0\.outer_norm1\.weight')

_OTHER_MODELS = (
    (r'relative_position_bias_table', 'a Swin Transformer'),
    (r'patch_embed1\.|pos_embed1', 'a PVT'),
    (r'\.graph_conv\.', 'a Vision GNN (ViG)'),
    (r'layer1\.0\.conv1\.weight', 'a ResNet'),
    (r'downsample_layers\.0\.0', 'a ConvNeXt'),
    (r'conv_stem\.weight', 'an EfficientNet or a MobileNetV3'),
    (r'stage2\.0\.branches', 'an HRNet'),
    (r'cls_token', 'a Vision Transformer'),
)


class Identity(NamedTuple):
    """A backbone of the family; None for what the weights do not determine."""

    kind: str | None  # its class
    arch: str | None  # None for a custom arch
    size: int | None  # of the pretraining images in pixels; None without a square position table

    def __str__(self) -> str:
        name = f'{self.kind} {self.arch or "of an unknown arch"}'
        return f'{name}, {self.size} px' if self.size else name


def identify(weights: Weights) -> Identity:
    """Recognise a backbone of the family by names and shapes; some weights may be missing."""
    weights = by_our_names(weights)
    networks = family()
    likeness = {kind: _likeness(weights, network) for kind, network in networks.items()}
    kind = max(likeness, key=likeness.get, default=None)
    # The second share is small for a part of a network, but not for a name that others have too.
    if kind is None or likeness[kind][0] <= 0.5 or likeness[kind][1] <= 0.2:
        return Identity(None, None, None)
    table = weights.get('outer_pos')
    places = 0 if table is None or table.dim() != 3 else table.shape[1]
    # Without or with a class token in front of the grid.
    side = side_of_square(places) or side_of_square(places - 1)
    return Identity(kind, _arch_of(weights, networks[kind]), side and side * networks[kind].patch)


def recognised(weights: Weights) -> str | None:
    """The network that weights belong to, in words; None if it is not known."""
    found = identify(weights)
    if found.kind:
        return str(found)
    for pattern, name in _OTHER_MODELS:
        if any(re.search(pattern, key) for key in weights):
            return name
    return None


def describe_network(weights: Weights) -> str:
    """The same; a network that is not known is described by its first keys."""
    return recognised(weights) or f'an unknown model with the keys {first_few(weights)}'


def _likeness(weights: Weights, network: type[Network]) -> tuple[float, float]:
    """Two shares of the weights below a network's roots: those it knows, and those it finds.

    The first is of the kinds in the file, the second of the network's own kinds.
    """
    found = _kinds(key for key in weights if key.split('.')[0] in network.roots)
    if not found:
        return 0.0, 0.0
    own = _own_kinds(network)
    return len(found & own) / len(found), len(found & own) / max(len(own), 1)


@cache
def _own_kinds(network: type[Network]) -> frozenset[str]:
    """The kinds of a network's weights, which its variants share; none if it cannot be built."""
    with suppress(Exception), torch.device('meta'):  # it may be anyone's
        return _kinds(network(next(iter(network.archs))).state_dict())
    return frozenset()


def _kinds(names: Iterable[str]) -> frozenset[str]:
    """Names without the numbers of layers, so that depths do not matter."""
    return frozenset(re.sub(r'\d+', '*', name) for name in names)


def _arch_of(weights: Weights, network: type[Network]) -> str | None:
    """The only arch with the widths of the weights."""
    found = {
        int(norm[1] or 0): tuple(weight.shape)
        for key, weight in weights.items()
        if (norm := _FIRST_NORM.fullmatch(key))
    }
    fitting = []
    for arch, row in network.archs.items():
        widths = row[network.width]
        widths = widths if isinstance(widths, tuple) else (widths,)
        # A stage beyond the last has no width.
        if found and all(widths[i : i + 1] == shape for i, shape in found.items()):
            fitting.append(arch)
    return fitting[0] if len(fitting) == 1 else None
