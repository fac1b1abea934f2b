"""The networks and necks that a config can name.

Importing this package imports its modules, which registers their classes; only ``mmdet_models`` is
left to the configs that name it, because it needs mmdet.
"""

from importlib import import_module
from pkgutil import iter_modules

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

for _module in iter_modules(__path__):
    if _module.name != 'mmdet_models':
        import_module(f'{__name__}.{_module.name}')
