"""DETR with a position encoding generator in its encoder (arXiv 2102.10882). Needs mmdet."""

from mmdet.models.detectors import DETR
from mmdet.registry import MODELS
from mmdet.structures import SampleList
from torch import Tensor

from ptnt_mm.models.layers.peg import MaskedPEG
from ptnt_mm.models.layers.shapes import Grid


@MODELS.register_module()
class PEGDETR(DETR):
    """mmdet's DETR with a PEG after the encoder's first layer in place of its sinusoids.

    The decoder keeps its sinusoids. Arguments are those of DETR. Configs name this class by its
    path: importing ptnt_mm alone does not need mmdet.
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
