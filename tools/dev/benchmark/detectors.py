"""Whole detectors as contenders: from images to losses, with boxes and masks like COCO's."""

from collections.abc import Mapping

import numpy as np
import torch
from mmengine.hub import get_config
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.read import read_config

BOXES = 7
"""In an image; COCO has 7.3."""


class DetectorLosses(nn.Module):
    """A detector of a config, with random weights: the forward pass of a training step.

    Args:
        config: A name of this package's, or mmdet::FILE.
    """

    def __init__(self, config: str):
        super().__init__()
        settings = get_config(config) if '::' in config else read_config(config)
        self.detector = build_model(settings, config)
        self.samples: dict[tuple, list] = {}

    @property
    def parts(self) -> list[nn.Module]:
        """The parts that are compiled; heads would become many small graphs."""
        return [self.detector.backbone, self.detector.neck]

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """(B, 3, H, W) -> the losses."""
        return losses_of(self.detector.loss(image, self.samples_of(image)))

    def samples_of(self, image: Tensor) -> list:
        """What an image shows, drawn once for each shape."""
        if image.shape not in self.samples:
            self.samples[image.shape] = [_sample(image) for _ in image]
        return self.samples[image.shape]


def losses_of(found: Mapping) -> tuple[Tensor, ...]:
    """The losses alone, of what a detector returns."""
    return tuple(tree_leaves({name: found[name] for name in found if 'loss' in name}))


def _sample(image: Tensor):
    """Random boxes, classes and masks of an image that fills its batch."""
    from mmdet.structures import DetDataSample
    from mmdet.structures.mask import BitmapMasks
    from mmengine.structures import InstanceData

    height, width = image.shape[2:]
    corners = torch.rand(BOXES, 2) * torch.tensor([width * 0.7, height * 0.7])
    boxes = torch.cat([corners, corners * 1.1 + torch.tensor([width * 0.1, height * 0.1])], 1)
    masks = np.zeros((BOXES, height, width), np.uint8)
    for mask, (left, top, right, bottom) in zip(masks, boxes.int().tolist(), strict=True):
        mask[top:bottom, left:right] = 1
    instances = InstanceData(bboxes=boxes.to(image.device))
    instances.labels = torch.randint(80, (BOXES,), device=image.device)
    instances.masks = BitmapMasks(masks, height, width)
    size = (height, width)
    shapes = dict(img_shape=size, pad_shape=size, ori_shape=size, batch_input_shape=size)
    sample = DetDataSample(metainfo=dict(shapes, scale_factor=(1.0, 1.0)))
    sample.gt_instances = instances
    return sample


SWIN = 'mmdet::swin/{}_swin-t-p4-w7_fpn_1x_coco.py'

CONFIGS: Mapping[str, str] = {
    'retinanet_ptnt_s': 'retinanet_ptnt_s_1x',
    'retinanet_swin_t': SWIN.format('retinanet'),
    'mask_rcnn_ptnt_s': 'mask_rcnn_ptnt_s_1x',
    'mask_rcnn_swin_t': SWIN.format('mask-rcnn'),
}
"""The config of each contender."""
