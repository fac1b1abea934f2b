"""Networks of timm as backbones."""

from collections.abc import Sequence

from mmengine.model import BaseModule
from torch import Tensor, nn
from torch.nn import functional as F

from ptnt_mm.registry import MODELS
from ptnt_mm.weights.pretrained import PretrainedTrunk


@MODELS.register_module()
class TimmFeatures(BaseModule):
    """The maps of a network of timm, whose BatchNorm can be frozen.

    Args:
        model: timm's name of a network that returns maps, such as 'tf_efficientnet_lite0'.
        out_indices: Which of its maps to return, finest first; most networks have five, of strides
            2, 4, 8, 16 and 32.
        frozen_norms: Keep the statistics and weights of BatchNorm as they are in the file: a few
            images are not enough to replace them.
        init_cfg: ``dict(type='Pretrained', checkpoint=...)`` loads weights, or raises; others are
            MMEngine's initialisers. None keeps timm's random weights.

    Raises:
        ModuleNotFoundError: without timm.
        RuntimeError: timm's, for a name that it does not know or a network without maps.
    """

    def __init__(
        self,
        model: str,
        out_indices: Sequence[int] = (1, 2, 3, 4),
        frozen_norms: bool = False,
        init_cfg: dict | None = None,
    ):
        # timm is large, and only this class needs it.
        import timm

        super().__init__(init_cfg)
        self.network = timm.create_model(model, features_only=True, out_indices=tuple(out_indices))
        for name, layer in list(self.network.named_modules()):
            if isinstance(layer, timm.layers.Conv2dSame) and _SameConv2d.takes(layer):
                self.network.set_submodule(name, _SameConv2d(layer))
        if frozen_norms:
            self.network = timm.layers.freeze_batch_norm_2d(self.network)

    @property
    def out_channels(self) -> tuple[int, ...]:
        """Channels of each returned map."""
        return tuple(self.network.feature_info.channels())

    @property
    def pretrained_part(self) -> nn.Module:
        """The module that a pretrained file is for: files have timm's names."""
        # Some networks keep their names inside a wrapper.
        return getattr(self.network, 'model', self.network)

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """(B, 3, H, W) -> one map (B, C_i, H / stride_i, W / stride_i) per index.

        Sides are rounded up or down, as the network does. All maps are contiguous.
        """
        maps = self.network(image)
        if getattr(self.network, 'output_fmt', 'NCHW') == 'NHWC':
            maps = [level.permute(0, 3, 1, 2) for level in maps]
        # Contiguous, because consumers may ignore strides: mmcv's RoIAlign does.
        return tuple(level.contiguous() for level in maps)

    def init_weights(self) -> None:
        """Load the weights in ``init_cfg``, or draw them as it says; otherwise timm's stay.

        Raises:
            CheckpointError: if no file is given, or it cannot be read or does not fit.
        """
        pretrained = PretrainedTrunk(self.init_cfg)
        if pretrained.init:
            pretrained(self.pretrained_part)
            self.is_init = True
        elif self.init_cfg:
            super().init_weights()


class _SameConv2d(nn.Conv2d):
    """timm's ``Conv2dSame``: padded so that a map (H, W) -> (H / stride, W / stride), rounded up.

    timm computes the padding with ``ceil`` and ``max``, which torch.export cannot simplify: for
    images of any size, it would take minutes.

    Args:
        layer: timm's layer, whose parameters are used; one that :meth:`takes` accepts.
    """

    @staticmethod
    def takes(layer: nn.Conv2d) -> bool:
        """Whether kernels are at least as wide as their strides: others skip pixels."""
        kernels = zip(layer.kernel_size, layer.dilation, layer.stride, strict=True)
        return all(dilation * (kernel - 1) + 1 >= stride for kernel, dilation, stride in kernels)

    def __init__(self, layer: nn.Conv2d):
        super().__init__(
            layer.in_channels,
            layer.out_channels,
            layer.kernel_size,
            layer.stride,
            dilation=layer.dilation,
            groups=layer.groups,
            bias=layer.bias is not None,
            device='meta',  # draws no random numbers: those of a seed stay the same
        )
        self.weight, self.bias = layer.weight, layer.bias

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C', H / stride, W / stride), rounded up."""
        padding: list[int] = []
        for axis in (1, 0):  # F.pad begins with the last one
            extent = self.dilation[axis] * (self.kernel_size[axis] - 1) + 1
            total = extent - self.stride[axis] + -x.shape[2 + axis] % self.stride[axis]
            padding += [total // 2, total - total // 2]
        x = F.pad(x, padding)
        return F.conv2d(x, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
