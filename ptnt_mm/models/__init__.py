"""The networks and necks that a config can name."""

from ptnt_mm.models.classifier import PlainClassifier, PyramidTNTClassifier
from ptnt_mm.models.cpvt import CPVT
from ptnt_mm.models.pyramid_tnt import PyramidTNT
from ptnt_mm.models.simple_feature_pyramid import SimpleFeaturePyramid
from ptnt_mm.models.timm_features import TimmFeatures
from ptnt_mm.models.tnt import TNT, LegacyTNT
from ptnt_mm.models.upsampling_necks import FinerLevelNeck, TransposedConvNeck

__all__ = [
    'CPVT',
    'TNT',
    'FinerLevelNeck',
    'LegacyTNT',
    'PlainClassifier',
    'PyramidTNT',
    'PyramidTNTClassifier',
    'SimpleFeaturePyramid',
    'TimmFeatures',
    'TransposedConvNeck',
]
