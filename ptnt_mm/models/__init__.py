"""The networks and necks that a config can name.

Importing this package also registers the constructors in ``optimizer.py``.
"""

from ptnt_mm.models import optimizer  # noqa: F401
from ptnt_mm.models.classifiers import PlainClassifier, PyramidTNTClassifier
from ptnt_mm.models.cpvt import CPVT
from ptnt_mm.models.necks import (
    AveragePoolNeck,
    FinerLevelNeck,
    ResampledMapsNeck,
    SimpleFeaturePyramid,
    TransposedConvNeck,
)
from ptnt_mm.models.pyramid_tnt import PyramidTNT
from ptnt_mm.models.timm_features import TimmFeatures
from ptnt_mm.models.tnt import TNT, LegacyTNT

__all__ = [
    'CPVT',
    'TNT',
    'AveragePoolNeck',
    'FinerLevelNeck',
    'LegacyTNT',
    'PlainClassifier',
    'PyramidTNT',
    'PyramidTNTClassifier',
    'ResampledMapsNeck',
    'SimpleFeaturePyramid',
    'TimmFeatures',
    'TransposedConvNeck',
]
