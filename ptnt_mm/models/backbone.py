"""Base class of the family's backbones, and the checks of their arguments.

The base initialises, loads and freezes weights, pads images, and describes the returned maps. A
network's file has a table of its variants: a row holds the settings of the backbone and ``alias``,
the variant's short name in config names.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from mmengine.model import BaseModule
from torch import Tensor, nn

from ptnt_mm.models.position_tables import resize_learned
from ptnt_mm.models.positions import POSITIONS, PositionEncoding
from ptnt_mm.models.tokens import Grid, pad, reduced, tokens_to_contiguous_map
from ptnt_mm.utils.numbers import is_integer, is_number
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.weights.names import Weights
from ptnt_mm.weights.networks import Network, Table
from ptnt_mm.weights.pretrained import PretrainedTrunk


class FeatureInfo(list[dict]):
    """The stages or blocks of a backbone, with three methods of timm's class of this name.

    An index from 0 gives the dict of a stage or block, whether it is built or not: ``num_chs``, the
    channels; ``reduction``, the stride in pixels; ``module``, the name of the stage or block, which
    returns tokens and not the map; and ``index``.

    Args:
        container: Name of the module that contains the stages or blocks.
        channels: Of each stage or block.
        strides: Of each stage or block, in pixels.
        out_indices: The stages or blocks whose maps are returned, from 0.
    """

    def __init__(
        self,
        container: str,
        channels: Sequence[int],
        strides: Sequence[int],
        out_indices: Sequence[int],
    ):
        super().__init__(
            dict(num_chs=width, reduction=stride, module=f'{container}.{index}', index=index)
            for index, (width, stride) in enumerate(zip(channels, strides, strict=True))
        )
        self.out_indices = tuple(out_indices)

    def channels(self) -> list[int]:
        """Channels of each returned map."""
        return [self[index]['num_chs'] for index in self.out_indices]

    def reduction(self) -> list[int]:
        """Stride of each returned map, in pixels."""
        return [self[index]['reduction'] for index in self.out_indices]

    def module_name(self) -> list[str]:
        """Name of the stage or block of each returned map, such as 'stages.0'."""
        return [self[index]['module'] for index in self.out_indices]


def init_linear_(module: nn.Module) -> None:
    """Draw a linear layer from a truncated normal with 0.02, its bias 0; for ``Module.apply``."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


class Backbone(Network, BaseModule):
    """A backbone that freezes its first parts, and refuses weights that do not fit.

    A subclass declares the attributes of :class:`Network`, defines :meth:`forward_tokens`, calls
    :meth:`_init_and_freeze` at the end of its constructor, and returns from
    :meth:`_frozen_modules` the modules that ``frozen_stages`` refers to. Parameters of the backbone
    itself, outside of its modules, are tables and tokens that belong to the stem.

    Args:
        frozen_stages: -1 freezes nothing, 0 the stem, k the first k stages or blocks too.
        stages: Number of stages or blocks.
        init_cfg: ``dict(type='Pretrained', checkpoint=...)`` loads weights, or raises.

    Raises:
        ValueError: for ``frozen_stages`` out of range.
    """

    feature_info: FeatureInfo
    """Channels, strides and modules of the maps, as timm describes them."""

    parts: tuple[tuple[str, str], ...] = ()
    """For ``ptnt complexity``: patterns of names of parameters and modules, and the part that they
    belong to. The first match counts; {} becomes the matched index, counted from 1."""

    complete: Mapping[str, Any] = {}
    """Arguments with which it :attr:`is_complete`, where the defaults do not suffice."""

    class_tokens = 0
    """Outer tokens before the sentences that have no place on the grid."""

    in_chans = 3
    """Channels of an image."""

    init_layer = staticmethod(init_linear_)
    """Draws the weights of one layer as the authors' code does, for ``Module.apply``. Convolutions
    and norms keep torch's, as in the code of TNT and DeiT; tables are drawn by their owners."""

    position: PositionEncoding
    """Position encoding of the outer tokens."""

    def __init__(self, frozen_stages: int, stages: int, init_cfg: dict | None):
        super().__init__(init_cfg)
        if not is_integer(frozen_stages) or not -1 <= frozen_stages <= stages:
            raise ValueError(f'frozen_stages is {frozen_stages!r}; expected -1 to {stages}')
        self.frozen_stages = frozen_stages

    @property
    def out_channels(self) -> tuple[int, ...]:
        """Channels of each returned map."""
        return tuple(self.feature_info.channels())

    @property
    def out_strides(self) -> tuple[int, ...]:
        """Stride of each returned map, in pixels."""
        return tuple(self.feature_info.reduction())

    @property
    def is_complete(self) -> bool:
        """Whether its last output is that of the whole network, after the norm of a classifier."""
        return self.feature_info.out_indices[-1] == len(self.feature_info) - 1

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """(B, 3, H, W) -> one map (B, C_i, ceil(H / stride_i), ceil(W / stride_i)) per output.

        Maps are contiguous, as the operators of the hosts expect: several of mmcv's, RoIAlign among
        them, misread a map in channels-last order without an error. They exclude class tokens.

        Args:
            image: Normalised RGB images of any size.

        Raises:
            ValueError: for a different number of channels or axes, integers, or a side below one
                token.
        """
        first = self.class_tokens
        return tuple(
            # A slice from 0 would be an operator in an exported graph.
            tokens_to_contiguous_map(outer[:, first:] if first else outer, hw)
            for _, outer, hw in self.forward_tokens(image)
        )

    @abstractmethod
    def forward_tokens(self, image: Tensor) -> list[tuple[Tensor | None, Tensor, Grid]]:
        """(B, 3, H, W) -> per output: inner (B*N, m, c) or None, outer (B, n + N, C), hw.

        The outer tokens, n class tokens first, are those of the map, after its norm if it has one.

        Raises:
            ValueError: as :meth:`forward`.
        """

    def init_weights(self) -> None:
        """Load the weights in ``init_cfg``; random ones were drawn when the model was built.

        Raises:
            CheckpointError: if no file is given, or it cannot be read or lacks weights of the
                trunk.
            ValueError: if a list combines pretrained weights with other initialisations.
        """
        pretrained = PretrainedTrunk(self.init_cfg)
        if pretrained.init is None:
            super().init_weights()
        elif isinstance(self.init_cfg, list) and len(self.init_cfg) > 1:
            raise ValueError('init_cfg: use only the Pretrained dict, which sets all weights')
        else:
            pretrained(self)
            self.is_init = True  # modules around it do not load the file again

    def train(self, mode: bool = True) -> 'Backbone':
        """Set the mode, but leave frozen modules in evaluation mode."""
        super().train(mode)
        for module in self._frozen_modules():
            module.eval()
        return self

    def pretrained_tables(self) -> dict[str, Table]:
        """The table of the outer tokens; for n class tokens, its first n entries have no place."""
        return dict(outer_pos=Table(resize_learned, dims=3, grid_axes=(1,), has_class_token=True))

    def no_weight_decay(self) -> set[str]:
        """Names of the parameters that the authors do not decay: tables and class tokens.

        Biases and one-dimensional weights are the optimizer's to spare.
        """
        return {name for name, _ in self.named_parameters(recurse=False)}

    @abstractmethod
    def _frozen_modules(self) -> list[nn.Module]:
        """The modules that ``frozen_stages`` freezes."""

    def _init_and_freeze(self) -> None:
        """Draw all weights, and freeze those that ``frozen_stages`` names."""
        self.apply(self.init_layer)
        tables = list(self.parameters(recurse=False))
        for table in tables:
            nn.init.trunc_normal_(table, std=0.02)
        for module in self._frozen_modules():
            module.requires_grad_(False)
        if self.frozen_stages >= 0:
            for table in tables:
                table.requires_grad_(False)
        self.train(self.training)

    def _padded(self, image: Tensor) -> Tensor:
        """Check images, and pad bottom and right with zeros to multiples of the patch."""
        self._check_image(image)
        h, w = reduced(image.shape[2:], self.patch)
        return pad(image, (self.patch * h, self.patch * w))

    def _check_image(self, image: Tensor) -> None:
        name, side = type(self).__name__, self.patch
        if image.dim() != 4 or image.shape[1] != self.in_chans:
            raise ValueError(
                f'{name} takes images (B, {self.in_chans}, H, W), but got {tuple(image.shape)}'
            )
        if not image.is_floating_point():
            raise ValueError(
                f'{name} takes normalised floating-point images, but got {image.dtype}: subtract '
                'the mean 127.5 and divide by 127.5 first (a data_preprocessor does it in mmdet)'
            )
        if min(image.shape[2:]) < side:
            raise ValueError(
                f'{name} takes images of at least {side}x{side} pixels, one token, but got '
                f'{image.shape[2]}x{image.shape[3]}: resize or pad them'
            )


def find_trunk(model: nn.Module) -> Backbone | None:
    """Return the first backbone of this package in a model, or None."""
    return next((module for module in model.modules() if isinstance(module, Backbone)), None)


def full_names(archs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Map every accepted spelling, names and aliases, to the name of the arch."""
    return {word: name for name, row in archs.items() for word in (name, row['alias'])}


def settings(row: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the backbone of a row is built from."""
    return {key: value for key, value in row.items() if key != 'alias'}


def read_arch(arch: str | dict, archs: Mapping[str, dict]) -> dict:
    """The settings of an arch, by its name or alias, or given as a row.

    Raises:
        ValueError: for an unknown name, or a dict whose keys differ from those of the rows.
    """
    if not isinstance(arch, Mapping):
        return settings(archs[choose('arch', arch, full_names(archs))])
    arch, keys = settings(arch), set(settings(next(iter(archs.values()))))
    if set(arch) != keys:
        missing, unknown = sorted(keys - set(arch)), sorted(set(arch) - keys)
        raise ValueError(f'an arch dict has the keys {sorted(keys)}: {missing=}, {unknown=}')
    return arch


def is_positive(value: Any) -> bool:
    """Whether this is an integer above 0."""
    return is_integer(value) and value > 0


def check_pretrain_img_size(size: int, multiple: int) -> int:
    """Return the size in pixels; raise a ValueError unless every stage's grid divides evenly."""
    if not is_positive(size) or size % multiple:
        raise ValueError(
            f'pretrain_img_size is {size!r}: expected a multiple of {multiple} pixels, so that it '
            'divides into the grids of the position tables'
        )
    return size


def check_heads(kind: str, dim: int, heads: int) -> None:
    """Raise a ValueError if the heads do not divide the width; ``kind`` is 'inner' or 'outer'."""
    if dim % heads:
        raise ValueError(f'arch: {kind} width {dim} does not divide into {heads} {kind} heads')


def check_indices(
    name: str, given: Sequence[int], number: int, kind: str, such_as: str
) -> tuple[int, ...]:
    """Return the indices, counted from 0; negative ones count from the last.

    Args:
        name: The option.
        given: Its value.
        number: How many stages or blocks there are.
        kind: 'stages' or 'blocks'.
        such_as: An example for the message.

    Raises:
        ValueError: unless they increase and are in range.
    """
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ValueError(f'{name} is {given!r}: expected indices of {kind} such as {such_as}')
    in_order = range(number)
    indices = [in_order[i] if is_integer(i) and -number <= i < 0 else i for i in given]
    are_integers = all(map(is_integer, indices))
    if not indices or not are_integers or indices != [i for i in in_order if i in indices]:
        raise ValueError(
            f'{name} is {tuple(given)}: expected increasing indices of {kind} from 0 to '
            f'{number - 1}, such as {such_as}'
        )
    return tuple(indices)


def choose(name: str, value: str, table: Mapping[str, Any]) -> Any:
    """Return the entry of a table, or raise a ValueError that suggests the nearest name."""
    if not isinstance(value, str) or value not in table:
        raise ValueError(unknown_name(name, value, table))
    return table[value]


def choose_position(
    name: str, setting: str | dict, names: Sequence[str]
) -> Callable[..., PositionEncoding]:
    """Return the class for an option; it takes a width, a grid and a number of class tokens.

    Args:
        name: Name of the option.
        setting: A key of ``POSITIONS``, or a dict with it as ``type`` and the class's options.
        names: The keys that the backbone supports.
    """
    options = dict(setting) if isinstance(setting, Mapping) else dict(type=setting)
    kind = options.pop('type', None)
    cls = choose(name, kind, {key: POSITIONS[key] for key in names})
    unknown = sorted(options.keys() - set(cls.options))
    if unknown:
        has = ', '.join(cls.options) or 'none'
        raise ValueError(f'{name} {kind!r} has no option {", ".join(unknown)}: expected {has}')
    return partial(cls, **options)


def position_of(weights: Weights, names: Sequence[str]) -> str:
    """The first position encoding with the weights of a backbone; those of pegs at any place.

    Args:
        weights: Weights by our names; only keys and shapes are read.
        names: The keys of ``POSITIONS`` that the backbone supports.
    """
    pairs = next((weights[key] for key in weights if f'.{key}'.endswith('.relative_pos')), None)
    stored = ('outer_pos' in weights, any('.peg.' in f'.{key}' for key in weights))
    for name in names:
        cls, base = POSITIONS[name], PositionEncoding
        own = (cls.new_table is not base.new_table, cls.new_pegs is not base.new_pegs)
        if own == stored and _fits(cls.relative_position.pretrained_table(), pairs):
            return name
    return 'none'


def _fits(table: Table | None, stored: Tensor | None) -> bool:
    """Whether a stored table of positions between pairs of tokens is of this kind."""
    if table is None or stored is None:
        return table is stored
    return len(stored.shape) == table.dims and all(
        table.side(stored.shape[i]) for i in table.grid_axes
    )


def check_rates(**rates: float) -> None:
    """Raise a ValueError unless each rate of dropping, by its option, is in [0, 1).

    At 1, all values would be dropped and those kept divided by zero.
    """
    for name, rate in rates.items():
        if not is_number(rate) or not 0 <= rate < 1:
            raise ValueError(f'{name} is {rate!r}: expected at least 0 and below 1')


def drop_path_rates(rate: float, depths: tuple[int, ...]) -> list[list[float]]:
    """Rates that rise linearly from 0 at the first block to ``rate`` at the last, by stage."""
    total = sum(depths)
    rates = (rate * block / max(total - 1, 1) for block in range(total))
    return [list(islice(rates, depth)) for depth in depths]
