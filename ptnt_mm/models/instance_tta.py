"""Test-time augmentation with masks, which mmdet does not implement. Needs mmdet."""

import torch
from mmcv.ops import batched_nms
from mmdet.models.test_time_augs import DetTTAModel
from mmdet.structures import DetDataSample
from mmengine.structures import InstanceData
from torch import Tensor


class InstanceTTAModel(DetTTAModel):
    """Merge boxes as mmdet's DetTTAModel does; each box that is kept brings its mask along.

    Configs name this class by its path: importing ptnt_mm alone does not need mmdet.
    """

    def _merge_single_sample(self, data_samples: list[DetDataSample]) -> DetDataSample:
        """Predictions for the views of one image -> those for the image."""
        views = [sample.pred_instances for sample in data_samples]
        boxes, scores = self.merge_aug_bboxes(
            [view.bboxes for view in views],
            [view.scores for view in views],
            [sample.metainfo for sample in data_samples],
        )
        labels = torch.cat([view.labels for view in views])
        if len(boxes) == 0:
            return data_samples[0]
        kept, order = batched_nms(boxes, scores, labels, self.tta_cfg.nms)
        order = order[: self.tta_cfg.max_per_img]
        merged = data_samples[0].new()
        merged.pred_instances = InstanceData(
            bboxes=kept[: len(order), :4],
            scores=kept[: len(order), 4],
            labels=labels[order],
            masks=torch.cat([_as_taken(sample) for sample in data_samples])[order],
        )
        return merged


def _as_taken(sample: DetDataSample) -> Tensor:
    """The masks (n, H, W) of a view, mirrored back."""
    masks = sample.pred_instances.masks
    if not sample.flip:
        return masks
    axes = {'horizontal': (2,), 'vertical': (1,), 'diagonal': (1, 2)}
    return masks.flip(axes[sample.flip_direction])
