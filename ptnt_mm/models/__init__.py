"""The networks and necks that a config can name."""

from ptnt_mm.models.classifier import PyramidTNTClassifier
from ptnt_mm.models.pyramid_tnt import PyramidTNT
from ptnt_mm.models.transposed_conv_neck import TransposedConvNeck

__all__ = ['PyramidTNT', 'PyramidTNTClassifier', 'TransposedConvNeck']
