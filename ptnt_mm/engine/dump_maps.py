"""Write the class maps of an evaluation into a file."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.evaluator import DumpResults

from ptnt_mm.registry import METRICS


@METRICS.register_module()
class DumpMaps(DumpResults):
    """Dump class maps into a pickle, ``pred_sem_seg``, (1, H, W), for each image.

    Other entries about the image, such as ``img_path``, are kept. MMEngine's evaluator also keeps
    the logits: 400 MB for an image with 150 classes, all in memory.
    """

    def process(self, data_batch: Any, predictions: Sequence[dict]) -> None:
        """Drop logits from samples with a map; keep others, such as depths, unchanged."""
        found = []
        for sample in predictions:
            if 'pred_sem_seg' in sample:
                labels = sample['pred_sem_seg']['data']
                small = torch.uint8 if labels.max() < 256 else torch.int16
                sample = dict(sample, pred_sem_seg=labels.to(small))
                sample.pop('seg_logits', None)
                sample.pop('gt_sem_seg', None)
            found.append(sample)
        super().process(data_batch, found)
