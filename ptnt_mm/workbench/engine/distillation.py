"""Pretrain a backbone without labels: it learns to return the maps of a trained network.

Feature distillation (arXiv 1412.6550). The student and the teacher see the same image; a projector
for each stride turns the student's map into the channels of the teacher's, and a loss compares the
two. If the teacher is a classifier, the student also learns its class probabilities (arXiv
1503.02531).
"""

from abc import abstractmethod
from collections.abc import Sequence
from random import random
from typing import Any

import torch
from mmengine.model import BaseModel, BaseModule
from torch import Tensor, nn
from torch.nn import functional as F

from ptnt_mm.registry import MODELS
from ptnt_mm.weights.pretrained import PretrainedTrunk


class Teacher(BaseModule):
    """A trained network that stays as it is.

    Args:
        mean: Mean of its images' channels, red, green and blue, in [0, 255].
        std: Their standard deviation.
        init_cfg: ``dict(type='Pretrained', checkpoint=...)`` with its weights.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], init_cfg: dict | None):
        super().__init__(init_cfg)
        self.register_buffer('mean', torch.tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer('std', torch.tensor(std).view(-1, 1, 1), persistent=False)

    @abstractmethod
    def outputs(self, image: Tensor) -> tuple[Sequence[Tensor], Tensor | None]:
        """(B, 3, H, W), normalised -> its maps (B, C_i, H_i, W_i), and logits (B, K) or None."""

    @torch.no_grad()
    def forward(self, image: Tensor) -> tuple[Sequence[Tensor], Tensor | None]:
        """RGB (B, 3, H, W) in [0, 255] -> the same."""
        return self.outputs((image - self.mean) / self.std)

    def train(self, mode: bool = True) -> 'Teacher':
        """Stay in evaluation mode: statistics do not change."""
        return super().train(False)

    def freeze(self) -> None:
        """Compute no gradients."""
        self.train(False).requires_grad_(False)


@MODELS.register_module()
class TimmTeacher(Teacher):
    """A classifier of timm, with its maps and its logits.

    Args:
        model: timm's name of the network, such as 'tf_efficientnet_lite0'.
        mean: As for :class:`Teacher`, and ``std``.
        init_cfg: Its weights.

    Raises:
        ModuleNotFoundError: without timm.
        RuntimeError: timm's, for a name that it does not know.
    """

    def __init__(
        self,
        model: str,
        mean: Sequence[float],
        std: Sequence[float],
        init_cfg: dict | None = None,
    ):
        # timm is large, and only this class needs it.
        import timm

        super().__init__(mean, std, init_cfg)
        self.network = timm.create_model(model)
        self.freeze()

    @property
    def pretrained_part(self) -> nn.Module:
        """The module that a pretrained file is for: files have timm's names."""
        return self.network

    def outputs(self, image: Tensor) -> tuple[Sequence[Tensor], Tensor]:
        """(B, 3, H, W), normalised -> its maps, finest first, and logits (B, K)."""
        last, maps = self.network.forward_intermediates(image, norm=True)
        return maps, self.network.forward_head(last)

    def init_weights(self) -> None:
        """Load the weights, or raise a CheckpointError."""
        pretrained = PretrainedTrunk(self.init_cfg)
        if pretrained.init:
            pretrained(self.network)


@MODELS.register_module()
class BackboneTeacher(Teacher):
    """Any registered backbone, such as that of a trained detector.

    Args:
        backbone: Its settings, with its weights in ``init_cfg``.
        mean: As for :class:`Teacher`, and ``std``.
        init_cfg: Unused; the weights are those of ``backbone``.
    """

    def __init__(
        self,
        backbone: dict,
        mean: Sequence[float],
        std: Sequence[float],
        init_cfg: dict | None = None,
    ):
        super().__init__(mean, std, init_cfg)
        self.backbone = MODELS.build(backbone)
        self.freeze()

    def outputs(self, image: Tensor) -> tuple[Sequence[Tensor], None]:
        """(B, 3, H, W), normalised -> its maps, and no logits."""
        return self.backbone(image), None


@MODELS.register_module()
class MapMSE(nn.Module):
    """Mean squared error of maps, with each of the teacher's channels standardised."""

    def forward(self, student: Tensor, teacher: Tensor) -> Tensor:
        """Student and teacher (B, C, H, W) -> the loss, ()."""
        return F.mse_loss(student, standardised(teacher))


@MODELS.register_module()
class MapCosine(nn.Module):
    """One minus the cosine of two maps at each place, with a part of smooth L1.

    As in AM-RADIO (arXiv 2312.06709); the teacher's channels are standardised.

    Args:
        smooth_l1: The share of smooth L1, from 0 to 1.
    """

    def __init__(self, smooth_l1: float = 0.1):
        super().__init__()
        self.smooth_l1 = smooth_l1

    def forward(self, student: Tensor, teacher: Tensor) -> Tensor:
        """Student and teacher (B, C, H, W) -> the loss, ()."""
        teacher = standardised(teacher)
        angle = 1 - F.cosine_similarity(student, teacher, dim=1).mean()
        return (1 - self.smooth_l1) * angle + self.smooth_l1 * F.smooth_l1_loss(student, teacher)


def standardised(maps: Tensor) -> Tensor:
    """(B, C, H, W) -> the same, each channel with mean 0 and variance 1 over the batch."""
    return F.batch_norm(maps, None, None, training=True)


@MODELS.register_module()
class FeatureDistiller(BaseModel):
    """A backbone that imitates a teacher on images without labels.

    A map of the student is compared with the teacher's of the same stride. If the student has
    coarser maps, the teacher's coarsest is averaged down to them.

    Args:
        backbone: Settings of the student; only its weights are of use after training.
        teacher: Settings of a :class:`Teacher`.
        data_preprocessor: MMEngine's ``ImgDataPreprocessor``, with the mean and std of the
            student's RGB images.
        size: Side of the square images in pixels, by which strides are measured.
        loss: Settings of the loss between two maps.
        hidden: Channels between the two layers of a projector; None for a single layer.
        logits: Weight of the divergence between the class probabilities of student and teacher.
        mosaic: Share of the steps that see mosaics of four images, at twice the side.
        init_cfg: MMEngine's.

    Raises:
        ValueError: if the teacher has no map of any of the student's strides.
    """

    def __init__(
        self,
        backbone: dict,
        teacher: dict,
        data_preprocessor: dict,
        size: int = 128,
        loss: dict | None = None,
        hidden: int | None = None,
        logits: float = 0.1,
        mosaic: float = 0.5,
        init_cfg: dict | None = None,
    ):
        super().__init__(data_preprocessor, init_cfg)
        self.backbone = MODELS.build(backbone)
        self.teacher: Teacher = MODELS.build(teacher)
        self.loss = MODELS.build(loss or dict(type='MapCosine'))
        self.logits = logits
        self.mosaic = mosaic
        maps, (taught, classes) = self._measure(size)
        self.pairs = map_pairs([m.shape[2] for m in maps], [m.shape[2] for m in taught])
        if not self.pairs:
            raise ValueError(
                f'the teacher has no map of a stride of the student: {_strides(taught, size)} and '
                f'{_strides(maps, size)} pixels'
            )
        self.projectors = nn.ModuleList(
            _projector(maps[own].shape[1], taught[other].shape[1], hidden)
            for own, other in self.pairs
        )
        self.head = None
        if classes is not None and logits:
            self.head = nn.Linear(maps[-1].shape[1], classes.shape[1])

    def forward(
        self, inputs: Tensor, data_samples: Any = None, mode: str = 'loss'
    ) -> dict[str, Tensor] | tuple[Tensor, ...]:
        """RGB (B, 3, H, W), normalised -> the losses by name, or the student's maps."""
        if mode != 'loss':
            return self.backbone(inputs)
        has_mosaics = len(inputs) >= 4 and random() < self.mosaic
        image = mosaics(inputs) if has_mosaics else inputs
        maps, (taught, classes) = self.backbone(image), self._teach(image)
        losses = {}
        for projector, (own, other) in zip(self.projectors, self.pairs, strict=True):
            target = F.adaptive_avg_pool2d(taught[other], maps[own].shape[2:])
            losses[f'loss_map{own}'] = self.loss(projector(maps[own]).float(), target.float())
        if self.head is not None:
            divergence = F.kl_div(
                self.head(maps[-1].mean((2, 3))).float().log_softmax(1),
                classes.float().log_softmax(1),
                reduction='batchmean',
                log_target=True,
            )
            losses['loss_logits'] = self.logits * divergence
        return losses

    @torch.no_grad()
    def _measure(
        self, size: int
    ) -> tuple[Sequence[Tensor], tuple[Sequence[Tensor], Tensor | None]]:
        """The outputs of student and teacher for an image of this size."""
        image = torch.zeros(1, 3, size, size)
        self.backbone.eval()
        outputs = self.backbone(image), self.teacher(image)
        self.backbone.train()
        return outputs

    def _teach(self, image: Tensor) -> tuple[Sequence[Tensor], Tensor | None]:
        """The teacher's outputs for images that are normalised for the student."""
        scale = self.data_preprocessor
        return self.teacher(image * scale.std + scale.mean)


def mosaics(images: Tensor) -> Tensor:
    """Join every four images into one of twice the side: (B, C, H, W) -> (B/4, C, 2H, 2W).

    Objects keep their size, as in the larger images that detectors see. What does not fill a
    mosaic is left out.
    """
    whole = images[: len(images) // 4 * 4].unflatten(0, (-1, 2, 2))
    return whole.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)


def _projector(channels: int, out_channels: int, hidden: int | None) -> nn.Module:
    if hidden is None:
        return nn.Conv2d(channels, out_channels, 1)
    return nn.Sequential(
        nn.Conv2d(channels, hidden, 1), nn.GELU(), nn.Conv2d(hidden, out_channels, 1)
    )


def map_pairs(own: list[int], others: list[int]) -> list[tuple[int, int]]:
    """Indices of the student's and the teacher's maps to compare, by the sides of all maps.

    If several maps have the same side, the last one is used, which is the deepest. A map smaller
    than all of the teacher's is compared with its smallest.
    """
    taught = {side: index for index, side in enumerate(others)}
    coarsest = taught[min(taught)]
    found = []
    for side, index in {side: index for index, side in enumerate(own)}.items():
        if side in taught or side < min(taught):
            found.append((index, taught.get(side, coarsest)))
    return found


def _strides(maps: Sequence[Tensor], size: int) -> list[int]:
    return [size // m.shape[2] for m in maps]
