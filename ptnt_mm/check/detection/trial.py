"""A step of training a detector."""

import torch
from mmengine.structures import BaseDataElement
from torch.nn import functional

from ptnt_mm.check.trial import Trial


class DetectionTrial(Trial):
    """A detector and the largest of a few training images, with its boxes and masks."""

    def resize(self, annotated: BaseDataElement, size: tuple[int, int], scale: float) -> None:
        """Bring boxes, masks and semantic maps to another size."""
        for name in ('gt_instances', 'ignored_instances'):
            if name in annotated:
                instances = annotated.get(name)
                instances.bboxes.rescale_((scale, scale))
                if 'masks' in instances:
                    instances.masks = instances.masks.resize(size)
        if 'gt_sem_seg' in annotated:
            maps = annotated.gt_sem_seg.sem_seg[None].float()
            annotated.gt_sem_seg.set_data(
                dict(sem_seg=functional.interpolate(maps, size=size)[0].to(torch.int64))
            )
