"""Models that extend those of mmdet, and need it.

Configs name them by the path of this file: importing ptnt_mm alone does not need mmdet.
"""

import torch
from mmcv.ops import batched_nms
from mmdet.models.detectors import DETR
from mmdet.models.test_time_augs import DetTTAModel
from mmdet.registry import MODELS
from mmdet.structures import DetDataSample, SampleList
from mmdet.structures.mask import mask2bbox
from mmengine.structures import InstanceData
from torch import Tensor

from ptnt_mm.models.pegs import MaskedPEG
from ptnt_mm.models.tokens import Grid


class InstanceTTAModel(DetTTAModel):
    """Merge boxes as mmdet's DetTTAModel does; each box that is kept brings its mask along.

    Detectors without boxes, such as SOLO, have those around their masks.
    """

    def _merge_single_sample(self, data_samples: list[DetDataSample]) -> DetDataSample:
        """Predictions for the views of one image -> those for the image."""
        views = [sample.pred_instances for sample in data_samples]
        if 'masks' not in views[0]:
            return super()._merge_single_sample(data_samples)
        boxes, scores = self.merge_aug_bboxes(
            [view.bboxes for view in views],
            [view.scores for view in views],
            [sample.metainfo for sample in data_samples],
        )
        labels = torch.cat([view.labels for view in views])
        masks = torch.cat(list(map(_as_taken, data_samples)))
        # The zeros of a mirrored view are no longer zeros.
        if not any(view.bboxes.any() for view in views):
            boxes = mask2bbox(masks)
        if len(boxes) == 0:
            return data_samples[0]
        kept, order = batched_nms(boxes, scores, labels, self.tta_cfg.nms)
        order = order[: self.tta_cfg.max_per_img]
        merged = data_samples[0].new()
        merged.pred_instances = InstanceData(
            bboxes=kept[: len(order), :4],
            scores=kept[: len(order), 4],
            labels=labels[order],
            masks=masks[order],
        )
        return merged


def _as_taken(sample: DetDataSample) -> Tensor:
    """The masks (n, H, W) of a view, mirrored back."""
    masks = sample.pred_instances.masks
    if not sample.flip:
        return masks
    axes = {'horizontal': (2,), 'vertical': (1,), 'diagonal': (1, 2)}
    return masks.flip(axes[sample.flip_direction])


@MODELS.register_module()
class PEGDETR(DETR):
    """mmdet's DETR with a PEG after the encoder's first layer in place of its sinusoids.

    The decoder keeps its sinusoids (arXiv 2102.10882). Arguments are those of DETR.
    """

    def _init_layers(self) -> None:
        super()._init_layers()
        self.peg = MaskedPEG(self.embed_dims)

    def pre_transformer(
        self, img_feats: tuple[Tensor], batch_data_samples: SampleList | None = None
    ) -> tuple[dict, dict]:
        """One map (B, C, h, w) -> the inputs of the encoder, and those of the decoder."""
        encoder_inputs, decoder_inputs = super().pre_transformer(img_feats, batch_data_samples)
        encoder_inputs['hw'] = tuple(img_feats[-1].shape[2:])
        return encoder_inputs, decoder_inputs

    def forward_encoder(
        self, feat: Tensor, feat_mask: Tensor | None, feat_pos: Tensor, hw: Grid
    ) -> dict[str, Tensor]:
        """(B, h*w, C) -> memory (B, h*w, C).

        Args:
            feat: Tokens of the map.
            feat_mask: True where an image is padded, (B, h*w), or None if none is.
            feat_pos: Not used: the sinusoids.
            hw: The map's grid.
        """
        for i, layer in enumerate(self.encoder.layers):
            feat = layer(feat, query_pos=None, key_padding_mask=feat_mask)
            if i == 0:
                feat = self.peg(feat, hw, feat_mask)
        return dict(memory=feat)


@MODELS.register_module()
class PositionlessDETR(DETR):
    """mmdet's DETR whose encoder has no positions, for comparison; the decoder keeps its sinusoids.

    Arguments are those of DETR.
    """

    def forward_encoder(
        self, feat: Tensor, feat_mask: Tensor | None, feat_pos: Tensor
    ) -> dict[str, Tensor]:
        """Tokens (B, h*w, C) and their mask -> memory (B, h*w, C); ``feat_pos`` is not used."""
        return super().forward_encoder(feat, feat_mask, torch.zeros_like(feat_pos))
