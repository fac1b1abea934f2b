"""A step of training a segmenter."""

import torch
from mmengine.structures import BaseDataElement
from torch import Tensor
from torch.nn import functional

from ptnt_mm.check.trial import Trial


class SegmentationTrial(Trial):
    """A segmenter and the largest of a few training images, with its mask."""

    def resize(self, annotated: BaseDataElement, size: tuple[int, int], scale: float) -> None:
        """Bring the mask to another size."""
        for name in ('gt_sem_seg', 'gt_edge_map'):
            if name in annotated:
                pixels = annotated.get(name).data[None].float()
                smaller = functional.interpolate(pixels, size=size)[0].to(torch.int64)
                annotated.set_field(type(annotated.get(name))(data=smaller), name)

    def loss(self, side: int) -> tuple[Tensor, int]:
        """As :meth:`Trial.loss`; the preprocessor pads to less, in proportion."""
        preprocessor = self.model.data_preprocessor
        size = preprocessor.size
        if size is not None:
            scale = min(side / max(size), 1.0)
            preprocessor.size = tuple(round(length * scale) for length in size)
        try:
            return super().loss(side)
        finally:
            preprocessor.size = size
