"""CondInst and RTMDet-Ins: the head predicts the weights of a small network for each box.

The network computes the mask of the whole image, which a file returns at the stride of
``mask_grid``, and ``ptnt_mm.deploy`` interpolates.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.workbench.export.dense_heads import flat
from ptnt_mm.workbench.export.end_to_end import DenseDetector, EndToEndDetector
from ptnt_mm.workbench.export.selection import pick


class DynamicMaskDetector(DenseDetector):
    """Base class: boxes, and masks (B, D, h, w) of the whole image for each."""

    outputs = (*EndToEndDetector.outputs, 'masks')
    reach: int  # the distance that is 1 in the networks' coordinates, in strides of the box's level
    networks: nn.Module  # the head that contains the sizes of the networks' layers

    def forward(self, images: Tensor, sizes: Tensor) -> tuple[Tensor, ...]:
        """As for every detector, and masks, zeros without a box."""
        levels = self.model.extract_feat(self.normalised(images, sizes))
        predictions, weights, features = self.predict(levels)
        boxes, scores, labels, priors = self.detect(predictions, sizes)
        generator, device = self.model.bbox_head.prior_generator, features.device
        points = [
            generator.single_level_grid_priors(
                tuple(map_.shape[2:]), i, device=device, with_stride=True
            )
            for i, map_ in enumerate(weights)
        ]
        points = torch.cat(points)[priors]
        weights = pick(torch.cat([flat(map_, map_.shape[1]) for map_ in weights], dim=1), priors)
        masks = self.finished(self.masks(features, points, weights))
        return boxes, scores, labels, masks * (labels >= 0)[..., None, None]

    def predict(self, levels: Sequence[Tensor]) -> tuple[list, Sequence[Tensor], Tensor]:
        """Maps of the neck -> predictions of boxes, weights by level, features for masks."""
        raise NotImplementedError

    def finished(self, logits: Tensor) -> Tensor:
        """Logits of masks -> the values that mmdet interpolates."""
        return logits

    def masks(self, features: Tensor, points: Tensor, weights: Tensor) -> Tensor:
        """Run the network of each box.

        Args:
            features: (B, C, h, w).
            points: Place and stride of each box's prior in pixels, (B, D, 4).
            weights: Those of all layers, then their biases, (B, D, k).

        Returns:
            Logits, (B, D, h, w).
        """
        shape, inputs = tuple(features.shape[2:]), self.networks
        cells = inputs.prior_generator.single_level_grid_priors(shape, 0, device=features.device)
        distances = (points[:, :, None, :2] - cells) / (points[:, :, None, 2:] * self.reach)
        features = features.flatten(2)[:, None].expand(-1, points.shape[1], -1, -1)
        maps = torch.cat([distances.transpose(2, 3), features], dim=2)
        parts = weights.split([*inputs.weight_nums, *inputs.bias_nums], dim=2)
        layers = len(inputs.bias_nums)
        for i, (weight, bias) in enumerate(zip(parts[:layers], parts[layers:], strict=True)):
            weight = weight.unflatten(2, (bias.shape[2], -1))
            maps = weight @ (maps.relu() if i else maps) + bias[..., None]
        return maps[:, :, 0].unflatten(2, shape)


class CondInstDetector(DynamicMaskDetector):
    """mmdet's CondInst; masks are probabilities."""

    def __init__(self, model: nn.Module):
        super().__init__(model)
        head = model.mask_head
        self.reach, self.networks = head.size_of_interest, head
        self.thresholds['mask'] = model.test_cfg.mask_thr
        # mmdet's enlargement moves the mask by half a pixel.
        self.mask_grid = head.mask_out_stride, head.mask_out_stride // 2 + 0.5

    def predict(self, levels: Sequence[Tensor]) -> tuple[list, Sequence[Tensor], Tensor]:
        """See :meth:`DynamicMaskDetector.predict`."""
        *predictions, weights = self.model.bbox_head(levels)
        return predictions, weights, self.model.mask_head.mask_feature_head(levels)

    def finished(self, logits: Tensor) -> Tensor:
        """See :meth:`DynamicMaskDetector.finished`."""
        head = self.model.mask_head
        return enlarged(logits, head.mask_feat_stride // head.mask_out_stride).sigmoid()


class RTMDetInsDetector(DynamicMaskDetector):
    """mmdet's RTMDet with masks, which are logits."""

    reach = 8

    def __init__(self, model: nn.Module):
        super().__init__(model)
        self.networks = model.bbox_head
        probability = model.test_cfg.mask_thr_binary
        self.thresholds['mask'] = math.log(probability / (1 - probability))
        stride = model.bbox_head.prior_generator.strides[0][0]
        self.mask_grid = stride, stride / 2

    def predict(self, levels: Sequence[Tensor]) -> tuple[list, Sequence[Tensor], Tensor]:
        """See :meth:`DynamicMaskDetector.predict`."""
        *predictions, weights, features = self.model.bbox_head(levels)
        return predictions, weights, features


def enlarged(maps: Tensor, factor: int) -> Tensor:
    """Maps (B, C, h, w) -> (B, C, h * factor, w * factor), as mmdet's ``aligned_bilinear``."""
    if factor == 1:
        return maps
    height, width = (side * factor for side in maps.shape[2:])
    maps = F.pad(maps, (0, 1, 0, 1), mode='replicate')
    size = height + 1, width + 1
    maps = F.interpolate(maps, size, mode='bilinear', align_corners=True)
    maps = F.pad(maps, (factor // 2, 0, factor // 2, 0), mode='replicate')
    return maps[:, :, :height, :width]
