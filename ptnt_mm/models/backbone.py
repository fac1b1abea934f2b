"""Base class of the family's backbones: loading, freezing, checks of arguments and images."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mmengine.model import BaseModule
from torch import Tensor, nn

from ptnt_mm.models.archs import full_names, settings
from ptnt_mm.models.feature_info import FeatureInfo
from ptnt_mm.models.layers.position import POSITIONS, PositionEncoding
from ptnt_mm.models.layers.shapes import pad, reduced
from ptnt_mm.models.layers.tables import keep_first
from ptnt_mm.models.weights.pretrained import load_pretrained, pretrained_init
from ptnt_mm.utils.text import unknown_name


class Backbone(BaseModule):
    """A backbone that freezes its first parts, and refuses weights that do not fit.

    A subclass defines ``patch``, calls :meth:`_freeze` at the end of its constructor, and returns
    from :meth:`_frozen_modules` the modules that ``frozen_stages`` refers to. Parameters of the
    backbone itself, outside of its modules, are tables and tokens that belong to the stem.

    Args:
        frozen_stages: -1 freezes nothing, 0 the stem, k the first k stages or blocks too.
        stages: Number of stages or blocks.
        init_cfg: ``dict(type='Pretrained', checkpoint=...)`` loads weights, or raises.

    Raises:
        ValueError: for ``frozen_stages`` out of range.
    """

    feature_info: FeatureInfo
    """Channels, strides and modules of the maps, as timm describes them."""

    patch: int
    """Side of an outer token of the finest grid, in pixels."""

    position: PositionEncoding
    """Position encoding of the outer tokens."""

    def __init__(self, frozen_stages: int, stages: int, init_cfg: dict | None):
        super().__init__(init_cfg)
        if not isinstance(frozen_stages, int) or not -1 <= frozen_stages <= stages:
            raise ValueError(f'frozen_stages is {frozen_stages!r}; expected -1 to {stages}')
        self.frozen_stages = frozen_stages

    def init_weights(self) -> None:
        """Load the weights in ``init_cfg``; random ones were drawn when the model was built.

        Raises:
            CheckpointError: if no file is given, or it cannot be read or lacks weights of the
                trunk.
            ValueError: if a list combines pretrained weights with other initialisations.
        """
        pretrained = pretrained_init(self.init_cfg)
        if pretrained is None:
            super().init_weights()
        elif isinstance(self.init_cfg, list) and len(self.init_cfg) > 1:
            raise ValueError('init_cfg: give only the Pretrained dict, which sets all weights')
        else:
            load_pretrained(self, pretrained['checkpoint'], pretrained.get('prefix'))

    def train(self, mode: bool = True) -> 'Backbone':
        """Set the mode, but leave frozen modules in evaluation mode."""
        super().train(mode)
        for module in self._frozen_modules():
            module.eval()
        return self

    def resize_tables_once(self) -> None:
        """Resize position tables for the next image and keep the results, in place.

        All later images must have its size. For a graph of a fixed size.
        """
        self.position.encode = keep_first(self.position.encode)

    @abstractmethod
    def _frozen_modules(self) -> list[nn.Module]:
        """The modules that ``frozen_stages`` freezes."""

    def _freeze(self) -> None:
        for module in self._frozen_modules():
            module.requires_grad_(False)
        if self.frozen_stages >= 0:
            for table in self.parameters(recurse=False):
                table.requires_grad_(False)
        self.train(self.training)

    def _padded(self, image: Tensor) -> Tensor:
        """Check images, and pad bottom and right with zeros to multiples of the patch."""
        self._check_image(image)
        h, w = reduced(image.shape[2:], self.patch)
        return pad(image, (self.patch * h, self.patch * w))

    def _check_image(self, image: Tensor) -> None:
        name, side = type(self).__name__, self.patch
        if image.dim() != 4 or image.shape[1] != 3:
            raise ValueError(f'{name} takes images (B, 3, H, W), but got {tuple(image.shape)}')
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
    return isinstance(value, int) and value > 0


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


def check_out_indices(
    out_indices: Sequence[int], number: int, kind: str, such_as: str
) -> tuple[int, ...]:
    """Return the indices; raise a ValueError unless they increase and are in range."""
    if not isinstance(out_indices, Sequence) or isinstance(out_indices, str):
        raise ValueError(
            f'out_indices is {out_indices!r}: expected indices of {kind} such as {such_as}'
        )
    indices = tuple(out_indices)
    if not indices or list(indices) != sorted({*indices} & {*range(number)}):
        raise ValueError(
            f'out_indices is {indices}: expected increasing indices of {kind} from 0 to '
            f'{number - 1}, such as {such_as}'
        )
    return indices


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
