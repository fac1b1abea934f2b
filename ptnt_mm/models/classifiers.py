"""Image classifiers: PyramidTNT as its authors published it, and a head on any backbone.

They are two classes because checkpoints of both exist: the authors' have `stages.0...` and `head`,
mmpretrain's `backbone.stages.0...` and `head.fc`. Those in `ptnt_mm/timm.py` have timm's methods.
"""

from mmengine.model import BaseModule
from torch import Tensor, nn

from ptnt_mm.models.backbone import Backbone, full_names, init_linear_
from ptnt_mm.models.pyramid_tnt import PyramidTNT
from ptnt_mm.registry import MODELS
from ptnt_mm.weights.networks import family


def classifiers() -> dict[str, tuple[type[Backbone], str]]:
    """Network and arch by the names of classifiers, such as 'ptnt_small', 'ptnt_s', 'tnt_s'.

    PyramidTNT's are known without their prefix too: 'small', 's'.
    """
    return {
        prefix + word: (network, arch)
        for network in family().values()
        for prefix in dict.fromkeys((network.arch_prefix, network.arch_prefix or 'ptnt_'))
        for word, arch in full_names(network.archs).items()
    }


def build_classifier(name: str) -> BaseModule:
    """Build a classifier of the family with random weights, by a name in :func:`classifiers`."""
    network, arch = classifiers()[name]
    return PlainClassifier(dict(network.complete, type=network, arch=arch))


@MODELS.register_module()
class PyramidTNTClassifier(PyramidTNT):
    """The backbone with the final norm and head of the authors' checkpoints.

    Args:
        arch: 'tiny', 'small', 'medium', 'base', their aliases 'ti', 's', 'm', 'b', or a dict with
            the keys of a row of ``ARCHS``.
        num_classes: Length of the logits.
        drop_path_rate: Rate of dropping a residual branch in the last block.
        drop_rate: Dropout of MLPs, of the attention's projection and of the sentence table.
        with_se: Whether outer MLPs have squeeze and excitation.
        attention: 'fused' or 'eager'.
        pretrain_img_size: Side in pixels that the position tables belong to.
        init_cfg: ``dict(type='Pretrained', checkpoint=...)`` loads weights, or raises.
    """

    pretrained_may_lack = ('norm', 'head')

    def __init__(
        self,
        arch: str | dict,
        num_classes: int = 1000,
        drop_path_rate: float = 0.1,
        drop_rate: float = 0.0,
        with_se: bool = False,
        attention: str = 'fused',
        pretrain_img_size: int | None = None,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            arch,
            out_indices=(3,),
            drop_path_rate=drop_path_rate,
            drop_rate=drop_rate,
            with_se=with_se,
            attention=attention,
            pretrain_img_size=pretrain_img_size,
            init_cfg=init_cfg,
        )
        self.norm = nn.LayerNorm(self.out_channels[0])
        self.head = nn.Linear(self.out_channels[0], num_classes)
        self.head.apply(init_linear_)

    def forward(self, image: Tensor) -> Tensor:
        """(B, 3, H, W) -> logits (B, num_classes)."""
        _, outer, _ = self.forward_tokens(image)[-1]
        return self.head(self.norm(outer).mean(dim=1))


@MODELS.register_module()
class PlainClassifier(BaseModule):
    """A linear head on a backbone of the family.

    The head reads the class token, or the mean of all tokens if there is none. Its weights have the
    names of mmpretrain's, so ``ptnt_mm.weights.mmengine.load_strictly`` reads the same files,
    including published classifiers.

    Args:
        backbone: The settings of a backbone that returns its last block or stage, normalised.
        num_classes: Length of the logits.

    Raises:
        ValueError: for any other backbone.
    """

    pretrained_may_lack = ('head',)

    def __init__(self, backbone: dict, num_classes: int = 1000):
        super().__init__()
        self.backbone = MODELS.build(backbone)
        if not isinstance(self.backbone, Backbone) or not self.backbone.is_complete:
            raise ValueError(
                f'backbone is {backbone}: expected one of this package that returns its last block '
                'or stage, normalised (PyramidTNT: out_norms=True)'
            )
        fc = nn.Linear(self.backbone.out_channels[-1], num_classes)
        self.head = nn.ModuleDict(dict(fc=fc)).apply(init_linear_)

    def forward(self, image: Tensor) -> Tensor:
        """(B, 3, H, W) -> logits (B, num_classes)."""
        _, outer, _ = self.backbone.forward_tokens(image)[-1]
        return self.head.fc(outer[:, 0] if self.backbone.class_tokens else outer.mean(dim=1))
