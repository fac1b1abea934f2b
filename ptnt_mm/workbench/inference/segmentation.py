"""Segmenters of mmseg."""

from typing import Any

import numpy as np
import torch
from mmengine.structures import PixelData
from mmseg.models.utils import resize
from mmseg.structures import SegDataSample
from torch import Tensor

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.masks import encode_mask
from ptnt_mm.workbench.drawing.class_drawings import paint_map
from ptnt_mm.workbench.inference.predictor import Image, Predictor, fill_sample

_LOGITS_AT_ONCE = 2**26
"""Maximum number of logits at image size, 256 MiB of float32: those of a photograph with 150
classes would take 14 GB."""


class _Segmenter(Predictor):
    """Conversion and drawing of a class map."""

    def __init__(self, model: Any, dataset_meta: dict, score_thr: float | None, loader: Any = None):
        super().__init__(model, dataset_meta, score_thr, loader)
        if score_thr is not None:
            raise UserError(
                f'`score_thr={score_thr}`: a segmenter assigns a class to every pixel and has no '
                'scores: omit it'
            )

    def describe(self, sample: SegDataSample) -> dict:
        """List the classes that occur, the largest first.

        Shares are of the image's pixels, masks COCO's run lengths.
        """
        labels = sample.pred_sem_seg.data[0].numpy()
        found, pixels = np.unique(labels, return_counts=True)
        order = np.argsort(-pixels, kind='stable')
        segments = [
            dict(
                label=self.name(label),
                index=label,
                share=round(count / labels.size, 6),
                mask=encode_mask(labels == label),
            )
            for label, count in zip(found[order].tolist(), pixels[order].tolist(), strict=True)
        ]
        return dict(segments=segments)

    def draw(self, image: np.ndarray, sample: SegDataSample) -> np.ndarray:
        """Tint every pixel in the colour of its class, and write names where there is room."""
        labels = sample.pred_sem_seg.data[0].numpy()
        # Every pixel has a class, so no number is one of ignored pixels.
        return paint_map(image, labels, self.dataset_meta, int(labels.max()) + 1)


class Segmenter(_Segmenter):
    """A segmenter: every pixel has a class, and no score."""

    def predict(self, image: Image) -> SegDataSample:
        """Classify each pixel of the original image: ``pred_sem_seg``, (1, H, W)."""
        image = self.load(image)
        data = self.prepare(image)
        with torch.no_grad():
            (sample,) = data['data_samples']
            logits = self.model.inference(data['inputs'], [sample.metainfo])
            # Remove the padding of the preprocessor.
            left, right, top, bottom = sample.metainfo.get('img_padding_size', (0, 0, 0, 0))
            height, width = logits.shape[2:]
            logits = logits[:, :, top : height - bottom, left : width - right]
            labels = self._labels(logits, image.size)
        sample.pred_sem_seg = PixelData(data=labels[None].cpu())
        return sample

    def _labels(self, logits: Tensor, size: tuple[int, int]) -> Tensor:
        """The class of each pixel, (H, W), from logits (1, C, h, w).

        As mmseg's ``postprocess_result``, but for a few classes at a time, because all of them
        would not fit into memory for a large photograph.
        """
        at_once = max(1, _LOGITS_AT_ONCE // (size[0] * size[1]))
        best, labels = logits.new_full(size, -torch.inf), logits.new_zeros(size, dtype=torch.long)
        for first in range(0, logits.shape[1], at_once):
            part = resize(
                logits[:, first : first + at_once],
                size=size,
                mode='bilinear',
                align_corners=self.model.align_corners,
                warning=False,
            )
            values, indices = part[0].max(dim=0)
            higher = values > best
            best = torch.where(higher, values, best)
            labels = torch.where(higher, indices + first, labels)
        if logits.shape[1] == 1:
            return (best.sigmoid() > self.model.decode_head.threshold).long()
        return labels


class ExportedSegmenter(_Segmenter):
    """An exported segmenter; its model is a ``Deployed``."""

    def predict(self, image: Image) -> SegDataSample:
        """Classify each pixel of the original image: ``pred_sem_seg``, (1, H, W)."""
        return fill_sample(SegDataSample(), self.model(self.load(image).pixels[..., ::-1]))
