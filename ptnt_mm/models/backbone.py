"""Base class of the family's backbones: initialisation, loading, freezing, checks of images."""

from abc import abstractmethod

from mmengine.model import BaseModule
from torch import Tensor, nn

from ptnt_mm.models.feature_info import FeatureInfo
from ptnt_mm.models.layers.init import draw_weights
from ptnt_mm.models.layers.position import PositionEncoding
from ptnt_mm.models.layers.shapes import pad, reduced
from ptnt_mm.models.layers.tables import keep_first
from ptnt_mm.models.weights.pretrained import load_pretrained, pretrained_init


class Backbone(BaseModule):
    """A backbone that freezes its first parts, and refuses weights that do not fit.

    A subclass defines ``patch``, calls :meth:`_draw_and_freeze` at the end of its constructor, and
    returns from :meth:`_frozen_modules` the modules that ``frozen_stages`` refers to. Parameters of
    the backbone itself, outside of its modules, are tables and tokens that belong to the stem.

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

    cost_parts: tuple[tuple[str, str], ...] = ()
    """Parts to count costs by: a pattern of names of parameters and modules, and a label.

    The first match counts. ``{}`` in a label becomes the matched index, counted from 1.
    """

    pretrained_may_lack: tuple[str, ...] = ()
    """Parameters, buffers or submodules that a pretrained file need not have, such as 'stages.3'.

    They keep the values of the constructor if the file lacks them or has another shape. Any
    submodule may define this attribute too.
    """

    class_tokens = 0
    """Outer tokens before the sentences that have no place on the grid."""

    position: PositionEncoding
    """Position encoding of the outer tokens."""

    def __init__(self, frozen_stages: int, stages: int, init_cfg: dict | None):
        super().__init__(init_cfg)
        if not isinstance(frozen_stages, int) or not -1 <= frozen_stages <= stages:
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
            raise ValueError('init_cfg: use only the Pretrained dict, which sets all weights')
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

    def _draw_and_freeze(self) -> None:
        """Draw all weights, and freeze those that ``frozen_stages`` names."""
        self.apply(draw_weights)
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


def find_trunk(model: nn.Module) -> Backbone | None:
    """Return the first backbone of this package in a model, or None."""
    return next((module for module in model.modules() if isinstance(module, Backbone)), None)
