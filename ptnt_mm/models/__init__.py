"""The networks and necks that a config can name."""

from ptnt_mm.models.classifier import PyramidTNTClassifier
from ptnt_mm.models.pyramid_tnt import PyramidTNT
from ptnt_mm.models.tnt import TNT
from ptnt_mm.models.transposed_conv_neck import TransposedConvNeck

__all__ = ['TNT', 'PyramidTNT', 'PyramidTNTClassifier', 'TransposedConvNeck']
