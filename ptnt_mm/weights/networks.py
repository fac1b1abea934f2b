"""Declarations by which a network's weights are found, recognised, converted and described.

A class makes them in its own file, and everything else reads them here: this package imports
no network.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn

from ptnt_mm.registry import MODELS
from ptnt_mm.weights.names import Weights


def side_of_square(places: int) -> int | None:
    """Side of a square grid, in tokens; None if the number is not a square."""
    side = math.isqrt(max(places, 0))
    return side if side and side * side == places else None


class Table(NamedTuple):
    """A kind of position table, which is converted if it belongs to a different grid."""

    # Takes the table, and for each grid its (h, w) in the file and in the model.
    resize: Callable[..., Tensor]
    dims: int
    grid_axes: tuple[int, ...]  # along which the places of a grid are counted
    has_class_token: bool = False  # one may come before the grid: one more place than a square
    # The side of the grid with this many places; None if there is no such grid.
    side: Callable[[int], int | None] = side_of_square


class Network:
    """Base class of a network with weights.

    A registered class that sets ``arch_prefix`` in its own body is a network of the family, and
    recognised by the names of its weights. A subclass that only adds parts or variants is not: its
    weights look like those of its base.

    Raises:
        TypeError: for a network of the family that does not declare everything.
    """

    archs: Mapping[str, Mapping[str, Any]]
    """A row for each variant; ``alias`` is its short name. Its published weights are in
    :data:`ptnt_mm.weights.published.FILES`."""

    arch_prefix: str
    """Put before the variants' names where those of all networks stand together: 'tnt_small'."""

    width: str
    """Key of a row with the channels of the outer tokens: a number, or one per stage. A file
    belongs to the row that matches the width of the first norm in each stage."""

    roots: tuple[str, ...]
    """First parts of the names of its weights, without norms of outputs and heads."""

    patch: int
    """Side of an outer token of the finest grid, in pixels."""

    size_step: int
    """``pretrain_img_size`` is a multiple of it, in pixels."""

    pretrained_may_lack: tuple[str, ...] = ()
    """Parameters, buffers or submodules that a pretrained file need not have, such as 'stages.3'.

    They keep the values of the constructor if the file lacks them or has another shape. Any
    submodule may define this attribute too.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if 'arch_prefix' in vars(cls):
            declared = ('archs', 'width', 'roots', 'patch', 'size_step')
            if missing := [name for name in declared if not hasattr(cls, name)]:
                raise TypeError(
                    f'{cls.__name__} sets arch_prefix but not {", ".join(missing)}: see Network '
                    f'in {__name__}'
                )

    @classmethod
    def options_of(cls, weights: Weights) -> dict[str, Any]:
        """Arguments of the constructor that weights show, where they are not the defaults."""
        return {}

    def pretrained_tables(self) -> dict[str, Table]:
        """Its position tables, by the names of its parameters; a submodule may define this too."""
        return {}

    @property
    def pretrained_part(self) -> nn.Module:
        """The module that a pretrained file is for."""
        return self


def family() -> dict[str, type[Network]]:
    """The registered networks by their names, PyramidTNT first.

    Raises:
        TypeError: if two have one prefix of their variants' names.
    """
    networks = {
        name: cls
        for name, cls in MODELS.module_dict.items()
        if isinstance(cls, type) and issubclass(cls, Network) and 'arch_prefix' in vars(cls)
    }
    owners: dict[str, str] = {}
    for name, network in networks.items():
        owner = owners.setdefault(network.arch_prefix, name)
        if owner != name:
            raise TypeError(
                f'{owner} and {name} have the same arch_prefix, {network.arch_prefix!r}'
            )
    return dict(sorted(networks.items(), key=lambda item: item[1].arch_prefix))


def trunk_roots() -> frozenset[str]:
    """First parts of the names of all networks' weights."""
    return frozenset(root for network in family().values() for root in network.roots)


def plain_settings(network: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a network for the metadata of its weights, which do not show all of them."""
    stated = {key: value for key, value in network.items() if key != 'init_cfg'}
    return json.loads(json.dumps(stated, default=str))
